package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"regexp"
	"time"

	"docket/internal/desk/api"
)

// events is the stream of a page that shows how things are.
func (c *Console) events(in *request) (page, error) {
	var of func(*snapshot) page
	switch in.PathValue("page") {
	case "now":
		of = c.nowOf
	case "lanes":
		of = c.lanesOf
	default:
		return page{}, &api.Problem{Status: http.StatusNotFound, Detail: "This desk has no such stream.", Hint: "Load the page again."}
	}
	return page{stream: &stream{step: func(ctx context.Context, e *events) (time.Duration, error) {
		s, err := c.watching.look(ctx)
		if err != nil {
			return 0, err
		}
		return lookEvery, e.show(of(s))
	}}}, nil
}

// asOf is the part of a page that always changes.
var asOf = regexp.MustCompile(`<time data-asof="1"[^>]*>[^<]*</time>`)

// show sends the page if it is another than before, and otherwise its time alone.
func (e *events) show(p page) error {
	var out bytes.Buffer
	f := e.c.frame(e.in, p)
	f.Section = ""
	if err := e.c.pages[p.name].ExecuteTemplate(&out, p.part, f); err != nil {
		return fmt.Errorf("render %s: %w", p.name, err)
	}
	text := visible(out.Bytes())
	sum := sha256.Sum256(asOf.ReplaceAll(text, nil))
	id := hex.EncodeToString(sum[:8])
	var sent bool
	if id != e.last {
		sent = e.send("page", id, text)
	} else {
		sent = e.send("asof", id, []byte(f.At.Format(time.RFC3339Nano)))
	}
	if e.last = id; !sent {
		return errGone
	}
	return nil
}
