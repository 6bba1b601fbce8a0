//go:build !synctests

package kafka

const poison = false
