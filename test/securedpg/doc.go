// Package securedpg proves, with the programs as they are run and a Postgres that speaks TLS and checks logins, what
// they do when a server or a login is not what it should be: each says so in its own words, stands still, and goes on by
// itself once that is mended. It has tests alone.
package securedpg
