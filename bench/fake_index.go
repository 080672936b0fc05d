package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// filledIndex is the archive's index of a filled ledger: the documents that fillLedger makes, oldest first. Pages that are
// asked for one after the other are made as they come, so that a million documents need no memory.
type filledIndex struct {
	docs      int
	rewritten bool // amounts are written otherwise than they were sent, with the same value

	mu    sync.Mutex
	lives *lives // has given at documents; guarded by mu
	at    int    // guarded by mu
}

// indexBegin is when the first document of an index was archived. Only the order counts.
var indexBegin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func (x *filledIndex) page(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	size, err := strconv.Atoi(q.Get("size"))
	from, err2 := 0, error(nil)
	if cursor := q.Get("cursor"); cursor != "initial" {
		from, err2 = strconv.Atoi(cursor)
	}
	if err != nil || err2 != nil || size < 1 || size > 1000 || from < 0 || from > x.docs || q.Get("sort") != "archiveDate asc" {
		http.Error(w, `{"message":"no such page"}`, http.StatusBadRequest)
		return
	}
	docs, err := x.take(from, min(size, x.docs-from))
	if err != nil {
		http.Error(w, `{"message":"no metadata"}`, http.StatusInternalServerError)
		return
	}
	writeJSON(w, map[string]any{"cursor": fmt.Sprint(from + len(docs)), "documents": docs, "found": x.docs, "start": from})
}

// take gives n documents from the given one on.
func (x *filledIndex) take(from, n int) ([]json.RawMessage, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.lives == nil || x.at > from {
		x.lives, x.at = newLives(indexBegin), 0
	}
	for ; x.at < from; x.at++ {
		x.lives.next()
	}
	docs := make([]json.RawMessage, 0, n)
	for ; n > 0; n-- {
		text, err := x.record(x.lives.next())
		if err != nil {
			return nil, err
		}
		x.at++
		docs = append(docs, text)
	}
	return docs, nil
}

// record is one document of the index: the metadata as it was sent, with the amount as a string.
func (x *filledIndex) record(l *life) (json.RawMessage, error) {
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(l.document.Metadata, &sent); err != nil {
		return nil, err
	}
	rec := map[string]any{"archiveId": fmt.Sprintf("%024x", l.at.UnixNano()), "bumid": l.remote, "archiveDate": l.at.Format(time.RFC3339Nano)}
	for name, value := range sent {
		rec[name] = value
	}
	amount := string(sent["amount"])
	if x.rewritten {
		amount += "00"
	}
	rec["amount"] = amount
	return json.Marshal(rec)
}
