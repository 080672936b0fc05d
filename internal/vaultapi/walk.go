package vaultapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// The bounds of one walk. A service whose pages never end must not keep the walk, or fill the memory.
const (
	mostPages     = 200_000
	mostRecords   = 10_000_000 // each costs some thirty bytes
	mostIdlePages = 20         // in a row, without a new document
)

// IndexWalk is one walk through the index of a vault. It decides which page comes next, when the walk ends, and whether
// the walk is complete. It calls nobody: the caller reads the page at [IndexWalk.Next] and gives it to [IndexWalk.Add].
//
// A walk is complete when the documents that were read, each counted once, reach the largest `found` that a page told.
// (Documents that leave the index during the walk may move others to pages that were read already. So a `found` that
// shrinks does not count.) `found` may be the number of the page, or of what was read so far. So it counts only on a page
// that is shorter than one before it, on a page behind which there is none, or when the page behind it brings nothing.
// Where `found` is not told, or is smaller than what was read, only an empty page completes the walk.
type IndexWalk struct {
	next    string            // cursor of the next page
	cursors map[[12]byte]bool // digests of every cursor that was asked for
	records map[[12]byte]bool // digests of what identifies each document
	ahead   bool              // a page told of more documents than were read: found is no count of what was read
	longest int               // documents of the longest page
	pages   int
	idle    int // pages since the last new document
	ended   bool
	result  IndexResult
}

// IndexResult is how far a walk came.
type IndexResult struct {
	Read     int    // documents, each counted once
	Found    int    // documents in the index, the largest number that a page told; -1: none told it
	Complete bool   // the whole index was read
	Why      string // it is not complete, in words
	Request  string // id of the last page's call
}

// NewIndexWalk returns a walk that begins with [FirstPage].
func NewIndexWalk() *IndexWalk {
	w := &IndexWalk{cursors: map[[12]byte]bool{}, records: map[[12]byte]bool{}, result: IndexResult{Found: -1}}
	w.goTo(FirstPage)
	return w
}

// indexer reads one page of an index; *Client is one.
type indexer interface {
	Index(ctx context.Context, v archive.VaultID, cursor string, size int, sort string) (Page, error)
}

// Read walks the index of a vault to the walk's end, oldest first: what is archived meanwhile comes last. each gets the
// documents of a page that no page before it had. What they say may be used whether or not the walk comes to the end of the
// index; what they leave out says something only where the result is complete. The error is that of a page that could not be
// read, or of each.
func (w *IndexWalk) Read(ctx context.Context, s indexer, v archive.VaultID, each func([]IndexRecord) error) error {
	for cursor, more := w.Next(); more; cursor, more = w.Next() {
		page, err := s.Index(ctx, v, cursor, largestPage, "archiveDate asc")
		switch {
		case err == nil:
			err = each(w.Add(page))
		case w.EndsWith(err):
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Has reports whether the walk met a document of this bumId.
func (w *IndexWalk) Has(r archive.RemoteID) bool {
	return r != "" && w.records[IndexRecord{Remote: r}.identity()]
}

// largestPage is the most records that the service gives in one page.
const largestPage = 1000

// Next returns the cursor of the page to read next. ok is false once the walk has ended.
func (w *IndexWalk) Next() (cursor string, ok bool) { return w.next, !w.ended }

// Result returns how far the walk came. It is final once the walk has ended.
func (w *IndexWalk) Result() IndexResult { return w.result }

// Add takes in the page that was read at the cursor that Next gave. It returns those documents that no page before it had.
func (w *IndexWalk) Add(p Page) (added []IndexRecord) {
	for _, rec := range p.Records {
		if id := rec.identity(); !w.records[id] {
			w.records[id] = true
			added = append(added, rec)
		}
	}
	w.pages++
	w.idle++
	if len(added) > 0 {
		w.idle = 0
	}
	shorter := len(p.Records) < w.longest
	w.longest = max(w.longest, len(p.Records))
	r := &w.result
	r.Read, r.Found, r.Request = len(w.records), max(r.Found, p.Found), p.Request
	w.ahead = w.ahead || r.Found > r.Read
	reached, repeated := r.Read == r.Found, w.cursors[digest(p.Cursor)]
	switch {
	case len(p.Records) == 0 && r.Read >= r.Found:
		w.end("")
	case reached && (shorter && w.ahead || p.Cursor == "" || repeated || w.idle >= mostIdlePages):
		w.end("")
	case p.Cursor == "":
		w.end("its last page names no next page")
	case repeated:
		w.end("its last page names a next page that was read before")
	case w.idle >= mostIdlePages:
		w.end(fmt.Sprintf("its last %d pages brought no new document", w.idle))
	case w.pages >= mostPages || r.Read >= mostRecords:
		w.end(fmt.Sprintf("it does not end: %d pages were read", w.pages))
	default:
		w.goTo(p.Cursor)
	}
	return added
}

// EndsWith reports whether the walk ends with a call that failed: `found` was reached, and the service answers with an
// error where a page behind the last one was asked for. Faults that pass by themselves, and credentials, end no walk.
func (w *IndexWalk) EndsWith(err error) bool {
	e, ok := errors.AsType[*apicall.Error](err)
	refused := ok && strings.HasPrefix(e.Code, "http-") && e.Code != "http-504" && !e.Denied && !e.Overloaded()
	if !refused || !w.ahead && !strings.HasPrefix(e.Code, "http-4") || w.ended || w.result.Read != w.result.Found {
		return false
	}
	w.end("")
	return true
}

func (w *IndexWalk) goTo(cursor string) {
	w.next = cursor
	w.cursors[digest(cursor)] = true
}

// end ends the walk. It is complete where nothing is said against that.
func (w *IndexWalk) end(why string) {
	w.ended, w.result.Complete, w.result.Why = true, why == "", why
}

// identity tells one document of an index from another.
func (r IndexRecord) identity() [12]byte {
	switch {
	case r.Remote != "":
		return digest("bumId " + string(r.Remote))
	case r.ArchiveID != "":
		return digest("archiveId " + r.ArchiveID)
	}
	return digest("record " + string(r.Raw))
}

// digest shortens a text, so that many fit in memory.
func digest(text string) (d [12]byte) {
	h := sha256.Sum256([]byte(text))
	copy(d[:], h[:])
	return d
}
