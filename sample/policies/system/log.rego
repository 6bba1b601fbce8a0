# What OPA takes out of a decision before it logs it: a password goes (listed under "erased"), a token is overwritten
# (listed under "masked").
package system.log

import rego.v1

mask contains "/input/password" if input.input.password

mask contains {"op": "upsert", "path": "/input/token", "value": "**REDACTED**"} if input.input.token
