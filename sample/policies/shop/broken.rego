# A policy with a mistake: for gold customers in winter both rules hold, and one rule cannot have two values. OPA answers
# 500 and logs the decision with the error in place of a result.
package shop.discount

import rego.v1

percent := 20 if input.level == "gold"

percent := 30 if input.season == "winter"
