package api_test

import (
	"context"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"docket/internal/desk/api"
	"docket/internal/testkit/readertest"
)

var update = flag.Bool("update", false, "write docs/openapi.yaml again")

const committed = "../../../docs/openapi.yaml"

// TestDocument_Committed holds the document in docs, from which others generate clients, against the served one.
func TestDocument_Committed(t *testing.T) {
	t.Parallel()
	tokens, err := api.ParseTokens(everybody)
	if err != nil {
		t.Fatal(err)
	}
	h, err := api.New(api.Config{Lease: time.Minute, Version: "v1"}, api.Ports{Book: newBook(0), Trial: tries{}, Decisions: newStore(0), States: &readertest.States{},
		Calendar: calendar, Inventory: noInventory, Prove: proveNothing, Forget: forgetNothing, ForgetLetters: forgetNoLetters, Verify: verifyNothing, Check: func(context.Context) []api.Finding { return nil }, WhereIs: func(context.Context, string) (api.Whereabouts, error) { return api.Whereabouts{}, nil }}, api.Auth{Tokens: tokens}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, api.DocumentPath+".yaml", nil)
	r.Header.Set("Authorization", "Bearer "+tokenOf("viewer"))
	served := httptest.NewRecorder()
	h.ServeHTTP(served, r)
	if *update {
		if err := os.WriteFile(committed, served.Body.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(committed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(text), served.Body.String()); diff != "" {
		t.Errorf("docs/openapi.yaml is not what a desk serves; go test ./internal/desk/api -run TestDocument_Committed -update writes it:\n%s", diff)
	}
}
