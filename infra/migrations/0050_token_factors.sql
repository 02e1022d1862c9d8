-- How far the tokenizer at hand undercounts each model's provider. The platform's, not a tenant's.
create table token_factors (
  model      text primary key,
  factor     double precision not null check (factor between 1 and 3),
  updated_at timestamptz not null default now()
);
grant select, insert, update on token_factors to octopus_app;
