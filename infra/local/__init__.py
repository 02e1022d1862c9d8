"""The whole of Octopus on one machine: `python -m infra.local run`.

* `stack`: starts the pieces in order, and stops them
* `postgres`, `aws`, `offline_model`, `issuer`: stand in for Aurora, AWS, the provider and Cognito
* `gateway`, `worker`: call the same handlers that Lambda calls, with the same events
* `environment`: the variables that these processes see, and no others of AWS
"""
