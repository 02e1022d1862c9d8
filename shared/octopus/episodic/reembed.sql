-- hold_episode --
-- The episode, kept from being archived or deleted until this transaction ends
select episode_id from episodes
where tenant_id = %(tenant_id)s and episode_id = %(episode_id)s
for share

-- texts_to_embed --
-- All traces of an episode, if one of them has no vector of a space
select f.ordinal, f.kind, f.content
from episode_facts f
where f.tenant_id = %(tenant_id)s and f.episode_id = %(episode_id)s and f.space_id = current_space()
  and exists (
    select from episode_facts m
    where m.tenant_id = %(tenant_id)s and m.episode_id = %(episode_id)s and m.space_id = current_space()
      and not exists (
        select from episode_facts n
        where n.tenant_id = %(tenant_id)s and n.episode_id = %(episode_id)s and n.ordinal = m.ordinal
          and n.space_id = %(space_id)s
      )
  )
order by f.ordinal

-- add_trace --
-- A trace with its vectors of a space
insert into episode_facts (tenant_id, episode_id, ordinal, agent_id, user_id, kind, content, said_on, first_seq, last_seq,
                           token_count, space_id, embedding, context, parts)
select tenant_id, episode_id, ordinal, agent_id, user_id, kind, content, said_on, first_seq, last_seq, token_count,
       %(space_id)s, %(embedding)s, %(context)s::halfvec, %(parts)s::vector[]
from episode_facts
where tenant_id = %(tenant_id)s and episode_id = %(episode_id)s and ordinal = %(ordinal)s and space_id = current_space()
on conflict do nothing

-- drop_vectors --
-- What is left of a space that is being dropped
delete from episode_facts
where tenant_id = %(tenant_id)s and episode_id = %(episode_id)s and space_id = %(space_id)s
  and exists (select from embedding_spaces where space_id = %(space_id)s and state = 'dropping')
