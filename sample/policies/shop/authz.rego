# Who may do what with orders: one boolean, false where nothing says otherwise.
package shop.authz

import rego.v1

default allow := false

allow if "admin" in roles

allow if {
	input.method == "GET"
	"clerk" in roles
}

# Customers see what is their own.
allow if {
	input.method == "GET"
	input.path == ["orders", input.user]
}

roles := data.shop.roles[input.user]
