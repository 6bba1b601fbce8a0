package db

import (
	"errors"
	"fmt"
	"testing"

	"docket/internal/errclass"
)

// knowing is an error that knows what to do about one code.
type knowing struct {
	err        error
	code, does string
}

func (k *knowing) Error() string { return "knowing" }
func (k *knowing) Unwrap() error { return k.err }

func (k *knowing) HintFor(code string) string {
	if code == k.code {
		return k.does
	}
	return ""
}

func TestHint_InnermostThatKnows(t *testing.T) {
	t.Parallel()
	refused := NewServerError("42501", "ERROR")
	inner := &knowing{refused, "42501", "inner"}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"by the code alone":     {refused, hints["42501"]},
		"one knows":             {fmt.Errorf("act: %w", inner), "inner"},
		"two know":              {&knowing{inner, "42501", "outer"}, "inner"},
		"only the outer knows":  {&knowing{&knowing{refused, "42P01", "inner"}, "42501", "outer"}, "outer"},
		"beside another":        {errors.Join(errors.New("x"), inner), "inner"},
		"knows of another code": {&knowing{refused, "42P01", "inner"}, hints["42501"]},
		"marked":                {errclass.As(&knowing{errors.New("x"), errclass.CodeConfig, "inner"}, errclass.CodeConfig), "inner"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Hint(c.err); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
