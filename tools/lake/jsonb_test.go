package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestJSONB_AsPostgresPrints(t *testing.T) {
	t.Parallel()
	d := json.NewDecoder(strings.NewReader(`{"bb":[1, 2.50,{}],"a":null,"c":{"z":"<é\"\n","y":true},"aa":[]}`))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	const want = `{"a": null, "c": {"y": true, "z": "<é\"\n"}, "aa": [], "bb": [1, 2.50, {}]}`
	if got := string(jsonb(nil, v)); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
