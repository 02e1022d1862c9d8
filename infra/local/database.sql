-- What exists before the first migration. Run by psql as the superuser; may run again.
-- On Aurora the master user owns the schema, and rds_superuser may create the extension.
SELECT 'CREATE ROLE octopus_owner LOGIN CREATEROLE' WHERE NOT EXISTS (
    SELECT FROM pg_roles WHERE rolname = 'octopus_owner'
) \gexec

SELECT 'CREATE DATABASE octopus OWNER octopus_owner' WHERE NOT EXISTS (
    SELECT FROM pg_database WHERE datname = 'octopus'
) \gexec

\connect octopus
CREATE EXTENSION IF NOT EXISTS vector;
