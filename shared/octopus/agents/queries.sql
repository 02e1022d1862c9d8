-- create_agent --
-- Create an agent
insert into agents (tenant_id, agent_id, name, description, system_prompt, model, memory_config)
values (%(tenant_id)s, %(agent_id)s, %(name)s, %(description)s, %(system_prompt)s, %(model)s, %(memory_config)s)
returning agent_id, name, description, system_prompt, model, memory_config, version, created_at, updated_at

-- get_agent --
-- One agent
select agent_id, name, description, system_prompt, model, memory_config, version, created_at, updated_at
from agents
where tenant_id = %(tenant_id)s and agent_id = %(agent_id)s and deleted_at is null

-- list_agents --
-- Every agent of the tenant, by name
select agent_id, name, description, system_prompt, model, memory_config, version, created_at, updated_at
from agents
where tenant_id = %(tenant_id)s and deleted_at is null
order by name

-- update_agent --
-- Change an agent if it is still at the version that was read
update agents
set name = %(name)s, description = %(description)s, system_prompt = %(system_prompt)s, model = %(model)s,
    memory_config = %(memory_config)s, version = version + 1, updated_at = now()
where tenant_id = %(tenant_id)s and agent_id = %(agent_id)s and version = %(version)s and deleted_at is null
returning agent_id, name, description, system_prompt, model, memory_config, version, created_at, updated_at

-- delete_agent --
-- Retire an agent: it answers no more, and its name is free again
update agents
set deleted_at = now(), version = version + 1, updated_at = now()
where tenant_id = %(tenant_id)s and agent_id = %(agent_id)s and deleted_at is null
