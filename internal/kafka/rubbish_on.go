//go:build synctests

package kafka

// rubbish says that memory which is given back is filled with what nobody mistakes for a record, in builds for tests.
const rubbish = true
