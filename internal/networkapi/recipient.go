package networkapi

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"vaultd/internal/archive"
)

// AnswersLive is for how long an answer of the directory with a valid line counts. Assumption: the specification names no time, and a line
// hardly ends without a day that the answer tells. An answer without one counts for the document that was asked about alone, once.
const AnswersLive = 24 * time.Hour

// mostAnswers bounds the answers that are kept. Beyond it the oldest one is forgotten, and its recipient is asked about again.
const mostAnswers = 4096

// frenchScheme is the scheme of the numbers that the directory of France lists.
const frenchScheme = "FR:ORGNR"

// The kinds of numbers of companies and facilities, as they stand before them.
const (
	sirenWord = "SIREN "
	siretWord = "SIRET "
)

// RecipientCheck asks the directory of France about recipients of documents, and keeps for a while which of them have a valid line. Nothing of it
// is stored: after a restart each is asked about anew. It is safe for concurrent use.
type RecipientCheck struct {
	client *Client
	now    func() time.Time
	france *time.Location

	mu      sync.Mutex
	answers map[archive.CompanyNumber]knownAnswer // guarded by mu
}

// knownAnswer is an answer of the directory with a valid line.
type knownAnswer struct{ asked, until time.Time }

// NewRecipientCheck returns a check that knows no answer yet.
func NewRecipientCheck(c *Client, now func() time.Time) (*RecipientCheck, error) {
	france, err := LocationOfFrance()
	if err != nil {
		return nil, err
	}
	return &RecipientCheck{client: c, now: now, france: france, answers: map[archive.CompanyNumber]knownAnswer{}}, nil
}

// LocationOfFrance returns the time zone whose days the directory means: elsewhere it may be another day.
func LocationOfFrance() (*time.Location, error) {
	france, err := time.LoadLocation("Europe/Paris")
	if err != nil {
		return nil, fmt.Errorf("find the day in France: %w", err)
	}
	return france, nil
}

// RecipientOf returns the number of the recipient of a package's document, which has the digest; empty: the directory does not list such
// recipients. Its error means that the document cannot be read as it was sealed.
func (*RecipientCheck) RecipientOf(p archive.Package, document archive.Digest) (archive.CompanyNumber, error) {
	raw, err := readPackedDocument(p, document)
	if err != nil {
		return "", err
	}
	return readRecipient(raw)
}

// readRecipient returns the number of the recipient that processingPreference names, where the directory of France lists such numbers.
func readRecipient(document []byte) (archive.CompanyNumber, error) {
	doc, err := parseDocument(document)
	if err != nil {
		return "", fmt.Errorf("read the recipient of a document: %w", err)
	}
	to := doc.root.Find(preferenceMember).Find("sentTo")
	switch id := to.FindText("id"); {
	case to.FindText("schemeId") != frenchScheme:
		return "", nil
	case isDigits(id, SIRENDigits):
		return archive.CompanyNumber(sirenWord + id), nil
	case isDigits(id, SIRETDigits):
		return archive.CompanyNumber(siretWord + id), nil
	}
	return "", nil // the check of documents refuses such a number before it comes here
}

// IsKnown reports whether an answer that still counts has a valid line of the recipient. It asks nobody.
func (r *RecipientCheck) IsKnown(to archive.CompanyNumber) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	a, known := r.answers[to]
	// A clock that was set back does not lengthen what an answer counts for.
	return known && a.covers(r.now())
}

func (a knownAnswer) covers(now time.Time) bool { return !now.Before(a.asked) && now.Before(a.until) }

// Ask asks the directory whether a line of the recipient is valid today, and keeps an answer that says so. The outcome Refused of an error means that
// it does not take the number.
func (r *RecipientCheck) Ask(ctx context.Context, to archive.CompanyNumber) (isListed bool, err error) {
	var q DirectoryQuery
	if siret, is := strings.CutPrefix(string(to), siretWord); is {
		q.SIRET = siret
	} else {
		q.SIREN = strings.TrimPrefix(string(to), sirenWord)
	}
	asked := r.now()
	lines, err := r.client.Directory(ctx, q)
	if err != nil {
		return false, err
	}
	// A line counts until the end of its last day, so an answer counts no longer than its lines.
	today := asked.In(r.france)
	tomorrow := time.Date(today.Year(), today.Month(), today.Day()+1, 0, 0, 0, 0, r.france)
	isValidOn := func(day time.Time) bool {
		return slices.ContainsFunc(lines, func(l DirectoryLine) bool { return q.Matches(l) && l.IsValidOn(day) })
	}
	until := asked.Add(AnswersLive)
	switch {
	case !isValidOn(today):
		r.forget(to)
		return false, nil
	case !isValidOn(tomorrow) && tomorrow.Before(until):
		until = tomorrow
	}
	r.keep(to, knownAnswer{asked: asked, until: until})
	return true, nil
}

// forget forgets what was known of a recipient.
func (r *RecipientCheck) forget(to archive.CompanyNumber) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.answers, to)
}

// keep keeps an answer. If there are too many, those that count no more go
// first, then the oldest one.
func (r *RecipientCheck) keep(to archive.CompanyNumber, a knownAnswer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.answers) >= mostAnswers {
		maps.DeleteFunc(r.answers, func(_ archive.CompanyNumber, old knownAnswer) bool { return !old.covers(a.asked) })
	}
	if len(r.answers) >= mostAnswers {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(r.answers)), func(x, y archive.CompanyNumber) int {
			return cmp.Or(r.answers[x].asked.Compare(r.answers[y].asked), strings.Compare(string(x), string(y)))
		})
		delete(r.answers, oldest)
	}
	r.answers[to] = a
}
