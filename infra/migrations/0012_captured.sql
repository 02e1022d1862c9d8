-- A procedure that is captured from a session cannot be written once the session has been erased.

alter table procedures
  add foreign key (tenant_id, source_conversation_id) references conversations
  on delete set null (source_conversation_id);
