-- add_tool --
-- Register a tool of an agent that exists
insert into agent_tools (tenant_id, agent_id, name, description, input_schema, target, is_active, version, created_by,
                         created_at, updated_at)
select tenant_id, agent_id, %(name)s, %(description)s, %(input_schema)s, %(target)s, %(is_active)s, 1, %(created_by)s,
       %(created_at)s, %(updated_at)s
from agents
where tenant_id = %(tenant_id)s and agent_id = %(agent_id)s and deleted_at is null

-- update_tool --
-- The next version, if the tool is still at the one that was read
update agent_tools
set description = %(description)s, input_schema = %(input_schema)s, target = %(target)s, is_active = %(is_active)s,
    updated_at = %(updated_at)s, version = version + 1
where tenant_id = %(tenant_id)s and agent_id = %(agent_id)s and name = %(name)s and version = %(version)s

-- get_tool --
-- One tool of an agent
select agent_id, name, description, input_schema, target, is_active, version, created_by, created_at, updated_at
from agent_tools
where tenant_id = %(tenant_id)s and agent_id = %(agent_id)s and name = %(name)s

-- list_tools --
-- The tools of an agent, by name
select agent_id, name, description, input_schema, target, is_active, version, created_by, created_at, updated_at
from agent_tools
where tenant_id = %(tenant_id)s and agent_id = %(agent_id)s
order by name

-- delete_tool --
-- Forget a tool; its calls stay on record
delete from agent_tools where tenant_id = %(tenant_id)s and agent_id = %(agent_id)s and name = %(name)s

-- begin_call --
-- A call that is about to be made
insert into tool_calls (tenant_id, tool_call_id, conversation_id, turn_id, agent_id, user_id, call_id, name, arguments,
                        procedure_id, procedure_version, step, called_at)
values (%(tenant_id)s, %(tool_call_id)s, %(conversation_id)s, %(turn_id)s, %(agent_id)s, %(user_id)s, %(call_id)s,
        %(name)s, %(arguments)s, %(procedure_id)s, %(procedure_version)s, %(step)s, %(called_at)s)

-- finish_call --
-- How a call ended
update tool_calls set outcome = %(outcome)s, duration_ms = %(duration_ms)s
where tenant_id = %(tenant_id)s and tool_call_id = %(tool_call_id)s

-- list_calls --
-- The calls of a conversation, in the order they were made
select tool_call_id, conversation_id, turn_id, agent_id, user_id, call_id, name, arguments, outcome, duration_ms,
       procedure_id, procedure_version, step, called_at
from tool_calls
where tenant_id = %(tenant_id)s and conversation_id = %(conversation_id)s
  and (%(user_id)s::text is null or user_id = %(user_id)s)
order by called_at, call_id
