//go:build !synctests

package kafka

const rubbish = false
