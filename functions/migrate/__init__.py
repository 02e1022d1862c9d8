"""CloudFormation custom resource: the schema, brought up to date while the stack deploys."""
