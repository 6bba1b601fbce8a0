# Which features are on. There is no default: for everyone else the decision is undefined, which is not a denial.
package shop.flags

import rego.v1

enabled if input.tenant == "acme"
