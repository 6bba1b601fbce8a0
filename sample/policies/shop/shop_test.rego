package shop_test

import rego.v1

import data.shop

test_an_admin_may_delete if shop.authz.allow with input as {"user": "alice", "method": "DELETE", "path": ["orders", "carol"]}

test_a_clerk_may_not if not shop.authz.allow with input as {"user": "bob", "method": "DELETE", "path": ["orders", "carol"]}

test_a_customer_sees_her_own if shop.authz.allow with input as {"user": "carol", "method": "GET", "path": ["orders", "carol"]}

test_a_small_refund_is_paid if {
	said := shop.refund.decision with input as {"user": "bob", "amount": 20, "order": {"customer": "carol"}}
	said.allow
	said.reasons == []
}

test_a_large_refund_says_why_not if {
	said := shop.refund.decision with input as {"user": "bob", "amount": 9000, "order": {"customer": "bob"}}
	not said.allow
	{violation.rule | some violation in said.violations} == {"amount_over_limit", "own_order"}
}

test_no_flag_is_undefined_rather_than_false if {
	shop.flags.enabled with input as {"tenant": "acme"}
	not shop.flags.enabled with input as {"tenant": "globex"}
}
