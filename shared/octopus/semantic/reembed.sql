-- hold_document --
-- The document, kept from being published, withdrawn or deleted until this transaction ends
select document_id from documents
where tenant_id = %(tenant_id)s and document_id = %(document_id)s
for share

-- take_known_vectors --
-- Chunks whose text the document has a vector of already
insert into chunks (tenant_id, document_id, generation, ordinal, agent_id, content, heading, page, token_count,
                    content_hash, space_id, embedding)
select c.tenant_id, c.document_id, c.generation, c.ordinal, c.agent_id, c.content, c.heading, c.page, c.token_count,
       c.content_hash, known.space_id, known.embedding
from chunks c
cross join lateral (
  select k.space_id, k.embedding from chunks k
  where k.tenant_id = %(tenant_id)s and k.document_id = %(document_id)s and k.space_id = %(space_id)s
    and k.content_hash = c.content_hash
  limit 1
) as known
where c.tenant_id = %(tenant_id)s and c.document_id = %(document_id)s and c.space_id = current_space()
on conflict do nothing

-- texts_to_embed --
-- Texts of chunks that have no vector of a space
select distinct on (c.content_hash) c.content_hash, c.heading, c.content
from chunks c
where c.tenant_id = %(tenant_id)s and c.document_id = %(document_id)s and c.space_id = current_space()
  and not exists (
    select from chunks n
    where n.tenant_id = %(tenant_id)s and n.document_id = %(document_id)s and n.generation = c.generation
      and n.ordinal = c.ordinal and n.space_id = %(space_id)s
  )
order by c.content_hash
limit %(limit)s

-- add_vector --
-- The vector of a space for every chunk of a text
insert into chunks (tenant_id, document_id, generation, ordinal, agent_id, content, heading, page, token_count,
                    content_hash, space_id, embedding)
select tenant_id, document_id, generation, ordinal, agent_id, content, heading, page, token_count, content_hash,
       %(space_id)s, %(embedding)s
from chunks
where tenant_id = %(tenant_id)s and document_id = %(document_id)s and content_hash = %(content_hash)s
  and space_id = current_space()
on conflict do nothing

-- drop_vectors --
-- What is left of a space that is being dropped
delete from chunks
where tenant_id = %(tenant_id)s and document_id = %(document_id)s and space_id = %(space_id)s
  and exists (select from embedding_spaces where space_id = %(space_id)s and state = 'dropping')
