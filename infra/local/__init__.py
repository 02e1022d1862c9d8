"""The whole of Octopus on one machine: `python -m infra.local run`.

* `stack`: starts the pieces in order, watches over them and stops them; `processes` and `leash` do the starting
* `state`: the directory `.octopus`, and how other commands find a running stack
* `postgres`, `aws` with `mirror`, `offline_model`, `issuer`: in the place of Aurora, AWS, the provider and Cognito
* `gateway`, `worker`: call the same handlers that Lambda calls, with the same events
* `environment`: the variables that these processes see, and none of the user's AWS account
* `seed`, `demo`: what a new stack begins with, and a way through all four memories
"""
