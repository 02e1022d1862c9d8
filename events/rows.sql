-- The rows that the events in this folder speak of: an agent of tenant acme, a document of it, and a conversation of
-- user ada that has ended.
insert into agents (tenant_id, agent_id, name, system_prompt)
values ('acme', '0d9b3a52-6c1f-4f7e-9a35-0b8d1f6c2e10', 'Otto', 'You are Otto, who answers questions about orders.');

insert into documents (tenant_id, document_id, agent_id, file_name, object_key, media_type, created_by)
values (
  'acme', '5f0f7c1c-9d0b-4f43-8f0a-7a2f7c3f6b11', '0d9b3a52-6c1f-4f7e-9a35-0b8d1f6c2e10', 'Refund policy 2026.md',
  'acme/0d9b3a52-6c1f-4f7e-9a35-0b8d1f6c2e10/5f0f7c1c-9d0b-4f43-8f0a-7a2f7c3f6b11/Refund_policy_2026.md',
  'text/markdown', 'ada'
);

insert into conversations (
  tenant_id, conversation_id, agent_id, user_id, status, last_seq, total_tokens, turn_count, ended_at, end_reason
)
values (
  'acme', '5f0f7c1c-9d0b-4f43-8f0a-7a2f7c3f6b11', '0d9b3a52-6c1f-4f7e-9a35-0b8d1f6c2e10', 'ada', 'ended', 4, 40, 2,
  now(), 'UserClosed'
);

insert into turns (tenant_id, turn_id, conversation_id, agent_id, user_id, client_message_id, user_seq, status)
select 'acme', turn_id::uuid, '5f0f7c1c-9d0b-4f43-8f0a-7a2f7c3f6b11', '0d9b3a52-6c1f-4f7e-9a35-0b8d1f6c2e10', 'ada',
       client_message_id, user_seq, 'completed'
from (values
  ('11111111-1111-4111-8111-111111111111', 'a', 1),
  ('22222222-2222-4222-8222-222222222222', 'b', 3)
) as given (turn_id, client_message_id, user_seq);

insert into messages (
  tenant_id, conversation_id, seq, message_id, turn_id, role, content, token_count, cumulative_tokens
)
select 'acme', '5f0f7c1c-9d0b-4f43-8f0a-7a2f7c3f6b11', seq, gen_random_uuid(), turn_id::uuid, role,
       jsonb_build_array(jsonb_build_object('type', 'text', 'text', said)), 10, 10 * seq
from (values
  (1, '11111111-1111-4111-8111-111111111111', 'user', 'My order 4711 arrived broken.'),
  (2, '11111111-1111-4111-8111-111111111111', 'assistant', 'I am sorry. You can have it replaced or refunded.'),
  (3, '22222222-2222-4222-8222-222222222222', 'user', 'A refund, please, to my card.'),
  (4, '22222222-2222-4222-8222-222222222222', 'assistant', 'Done: order 4711 is refunded to your card.')
) as given (seq, turn_id, role, said);
