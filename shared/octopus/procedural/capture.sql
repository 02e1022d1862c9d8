-- get_capture --
-- The verdict on a session
select conversation_id, outcome, procedure_id, quote, quote_seq, judged_at, announced_at
from procedure_captures
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s

-- put_capture --
-- Judge a session that is there and has not been judged
insert into procedure_captures (tenant_id, conversation_id, outcome, procedure_id, quote, quote_seq)
select tenant_id, conversation_id, %(outcome)s, %(procedure_id)s::uuid, %(quote)s, %(quote_seq)s
from conversations
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s
for key share
on conflict (tenant_id, conversation_id) do nothing

-- set_candidate --
-- Say which candidate the session yielded
update procedure_captures set procedure_id = %(procedure_id)s
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s

-- note_announced --
-- The candidate is on the bus
update procedure_captures set announced_at = now()
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s

-- list_captures --
-- The sessions that showed a procedure, oldest first
select conversation_id, outcome, procedure_id, quote, quote_seq, judged_at, announced_at
from procedure_captures
where tenant_id = %(tenant_id)s and procedure_id = %(procedure_id)s and outcome in ('captured', 'evidence')
order by judged_at, conversation_id

-- statistics --
-- Use by procedure; a session completes it when each tool of a required step was called with success since the first match
select u.procedure_id, sum(u.matches)::int as matches, count(*)::int as sessions, max(u.last_used_at) as last_used_at,
       case when bool_or(required.tools <> '{}')
            then count(*) filter (where required.tools <@ called.tools)::int end as completions
from procedure_uses u
join procedures p on p.tenant_id = u.tenant_id and p.procedure_id = u.procedure_id
cross join lateral (
  select coalesce(array_agg(step ->> 'tool_name'), '{}') as tools
  from jsonb_array_elements(p.steps) as step
  where step ->> 'tool_name' is not null and step ->> 'condition' is null and not (step ->> 'is_optional')::boolean
) as required
cross join lateral (
  select coalesce(array_agg(c.name), '{}') as tools
  from tool_calls c
  where c.tenant_id = u.tenant_id and c.conversation_id = u.conversation_id and c.outcome = 'succeeded'
    and c.called_at >= u.first_used_at
) as called
where u.tenant_id = %(tenant_id)s and (%(procedure_id)s::uuid is null or u.procedure_id = %(procedure_id)s)
group by u.procedure_id
order by last_used_at desc, u.procedure_id
