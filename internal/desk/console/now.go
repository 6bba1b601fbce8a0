package console

import (
	"strconv"

	"docket/internal/desk/api"
)

// nowPage is the content of the first page.
type nowPage struct {
	Now  api.NowAnswer
	Top  []api.ReportLine
	Lack []string
}

// topGroups is the number of lines of the report on the first page.
const topGroups = 8

func (c *Console) now(in *request) (page, error) {
	found, err := c.ask.Now(in.ctx(), in.who)
	if err != nil {
		return page{}, err
	}
	return page{name: "now", title: "Now", part: "live", body: nowPage{found, found.Lines[:min(topGroups, len(found.Lines))], lacking(nil, found.Partly)}}, nil
}

func numberOf(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && n < 0 {
		err = strconv.ErrRange
	}
	return n, err
}

func count64(n int64) string { return strconv.FormatInt(n, 10) }
