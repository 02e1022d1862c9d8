-- begin_session --
-- A session that has ended, without its messages
insert into conversations (tenant_id, conversation_id, agent_id, user_id, status, last_seq, started_at, ended_at, end_reason)
values (%(tenant_id)s, %(conversation_id)s, %(agent_id)s, %(user_id)s, 'ended', %(last_seq)s, %(at)s, %(at)s, 'UserClosed')

-- begin_document --
-- A document that is about to be indexed
insert into documents (tenant_id, document_id, agent_id, file_name, object_key, media_type, created_by, generation)
values (%(tenant_id)s, %(document_id)s, %(agent_id)s, %(file_name)s, %(file_name)s, 'text/plain', 'bench', 1)

-- add_chunk --
-- The one chunk of a document
insert into chunks (tenant_id, document_id, generation, ordinal, agent_id, content, token_count, content_hash, space_id,
                    embedding)
values (%(tenant_id)s, %(document_id)s, 1, 0, %(agent_id)s, %(content)s, %(token_count)s, '', %(space_id)s, %(embedding)s)

-- publish_document --
-- Let recall see it
update documents set live_generation = 1, status = 'indexed', chunk_count = 1
where tenant_id = %(tenant_id)s and document_id = %(document_id)s
