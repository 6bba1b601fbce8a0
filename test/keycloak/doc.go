// Package keycloak tests the login to the console at a real Keycloak: the desk as a program, its database, and a browser
// that fills in Keycloak's forms. The package has only tests.
package keycloak
