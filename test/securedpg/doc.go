// Package securedpg tests the real programs with a Postgres that speaks TLS and checks logins. Each wrong
// server or login has its own line: the program holds, and resumes by itself once that is repaired. The package has only
// tests.
package securedpg
