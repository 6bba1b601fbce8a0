package complete

import "docket/internal/history/reader"

// Paged joins how complete a page is with the pages before it: the worse word, and the earlier time. The numbers are those
// of the first page. They are of the whole range, and a record may become a row that no later page reads.
func Paged(before, page reader.Completeness) reader.Completeness {
	before.Freshness = worse(before.Freshness, page.Freshness)
	before.CompleteUntil = earlier(before.CompleteUntil, page.CompleteUntil)
	return before
}
