# Whether a refund may be paid, and why not: an object with allow, reasons and violations, one for each rule that spoke.
package shop.refund

import rego.v1

decision := {
	"allow": count(violations) == 0,
	"reasons": sort([violation.message | some violation in violations]),
	"violations": violations,
	"policies": ["shop/refund"],
}

violations contains {"rule": "amount_over_limit", "message": message} if {
	input.amount > limit
	message := sprintf("a refund of %d is above the limit of %d", [input.amount, limit])
}

violations contains {"rule": "no_role", "message": "the user has no role"} if {
	count(object.get(data.shop.roles, input.user, [])) == 0
}

violations contains {"rule": "own_order", "message": "nobody refunds an order of their own"} if {
	input.user == input.order.customer
}

default limit := 0

limit := max([data.shop.limits[role] | some role in data.shop.roles[input.user]])
