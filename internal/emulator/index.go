package emulator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// indexQuery is what an index call asks for.
type indexQuery struct {
	size, from int
	byDocument bool // sorted by documentDate, else by archiveDate
	ascending  bool
	cursor     string
}

// index returns one page of the vault's documents. The cursor is a plain offset: documents that are archived while a client
// walks a descending index shift its pages, as in the real service.
func (s *Server) index(c *call) reply {
	p, problem := parseIndexQuery(c.URL.RawQuery)
	if problem != "" {
		return c.refusal(http.StatusBadRequest, "VALIDATION", problem)
	}
	s.mu.Lock()
	docs := s.state.listArchived(c.vault, c.now, c.ignoresLate())
	s.mu.Unlock()
	docs = slices.DeleteFunc(docs, func(d archivedDocument) bool { return c.retentionOver(d.when, c.now) })
	p.sortDocuments(docs)
	if c.reading.IndexPage > 0 {
		p.size = min(p.size, c.reading.IndexPage)
	}
	from := min(p.from, len(docs))
	end := min(from+p.size, len(docs))
	next := p.nextCursor(from, end)
	switch again := fmt.Sprintf("at-%d.%d", from, c.record.N); c.fault.Kind {
	case ShortPage:
		end, next = min(from+1, end), p.cursor
	case EmptyPage:
		end, next = from, again
	case RepeatPage:
		next = again
	case CirclePage:
		if from > 0 {
			next = "at-0"
		}
	}
	records := []map[string]any{}
	for _, d := range docs[from:end] {
		records = append(records, c.indexRecord(d))
	}
	answer := map[string]any{"cursor": next, "documents": records, "start": end}
	if found, told := c.countFound(from, end, len(docs)); told {
		answer["found"] = found
	}
	if c.reading.NumbersAsStrings {
		for _, name := range []string{"found", "start"} {
			if n, told := answer[name]; told {
				answer[name] = fmt.Sprint(n)
			}
		}
	}
	return jsonReply(answer)
}

// countFound returns the number that a page gives as its count of documents. The page has those from one position to
// another, of all.
func (c *call) countFound(from, end, all int) (n int, told bool) {
	switch c.reading.IndexFound {
	case "none":
		return 0, false
	case "page":
		return end - from, true
	case "read":
		return end, true
	case "left":
		return all - from, true
	case "zero":
		return 0, true
	case "negative":
		return -1, true
	case "more":
		return all + 1000, true
	}
	return all, true
}

func parseIndexQuery(query string) (p indexQuery, problem string) {
	q, err := url.ParseQuery(query)
	if err != nil {
		return p, "the query is not readable"
	}
	for name, values := range q {
		if !slices.Contains([]string{"size", "sort", "cursor"}, name) || len(values) != 1 {
			return p, "the query may have size, sort and cursor, each once"
		}
	}
	p = indexQuery{size: 100, cursor: cmp.Or(q.Get("cursor"), "initial")}
	if q.Has("size") {
		p.size, err = strconv.Atoi(q.Get("size"))
		if err != nil || p.size < 1 || p.size > 1000 {
			return p, "size must be a number from 1 to 1000"
		}
	}
	field, direction, _ := strings.Cut(cmp.Or(q.Get("sort"), "archiveDate desc"), " ")
	p.byDocument, p.ascending = field == "documentDate", direction == "asc"
	if field != "archiveDate" && field != "documentDate" || !slices.Contains([]string{"", "asc", "desc"}, direction) {
		return p, "sort must be archiveDate or documentDate, with asc or desc"
	}
	if p.cursor == "initial" {
		return p, ""
	}
	if n, err := fmt.Sscanf(p.cursor, "at-%d", &p.from); n != 1 || err != nil || p.from < 0 {
		return p, "cursor must be initial or come from an answer"
	}
	return p, ""
}

// nextCursor returns the cursor of the next page. It is unchanged when this page was empty.
func (p indexQuery) nextCursor(from, end int) string {
	if from == end {
		return p.cursor
	}
	return "at-" + strconv.Itoa(end)
}

// sortDocuments sorts the documents, which come oldest first.
func (p indexQuery) sortDocuments(docs []archivedDocument) {
	if p.byDocument {
		slices.SortStableFunc(docs, func(a, b archivedDocument) int { return a.documentDate().Compare(b.documentDate()) })
	}
	if !p.ascending {
		slices.Reverse(docs)
	}
}

func (d archivedDocument) documentDate() time.Time {
	var head struct {
		DocumentDate time.Time `json:"documentDate"`
	}
	_ = json.Unmarshal(d.metadata, &head) // was valid when it was registered
	return head.DocumentDate
}

// indexRecord returns the metadata as it was sent, without its clientUUID and with the amount as a string. The readings may
// fill in fields that were not sent.
func (c *call) indexRecord(d archivedDocument) map[string]any {
	var sent map[string]json.RawMessage
	_ = json.Unmarshal(d.metadata, &sent)
	rec := map[string]any{}
	for name, value := range sent {
		rec[name] = value
	}
	delete(rec, "clientUUID")
	if c.reading.IndexFields == "filled" {
		for name, value := range map[string]string{"currencyCode": "EUR", "tradingPartner": "Acme", "flowDirection": "sending"} {
			if _, ok := sent[name]; !ok {
				rec[name] = value
			}
		}
	}
	if amount, ok := sent["amount"]; ok && !c.reading.NumbersAsStrings {
		rec["amount"] = string(amount)
	}
	rec["bumid"] = c.spellKnownBumID(d.bumID)
	rec["archiveId"] = digest([]byte("archive " + d.bumID))[:24]
	rec["archiveDate"] = d.when.UTC().Format(time.RFC3339Nano)
	return rec
}

// listVaults returns the vaults that the credentials may use.
func (s *Server) listVaults(c *call) reply {
	ids, objects := []string{}, []map[string]string{}
	for _, v := range s.cfg.Vaults {
		if v.Account.Name != c.account {
			continue
		}
		ids = append(ids, v.ID)
		objects = append(objects, map[string]string{"vaultId": v.ID, "name": v.Name})
	}
	switch c.reading.VaultList {
	case "ids":
		return jsonReply(ids)
	case "wrapped":
		return jsonReply(map[string]any{"vaults": objects})
	}
	return jsonReply(objects)
}
