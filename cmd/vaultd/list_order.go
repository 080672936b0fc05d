package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/catalog"
	"vaultd/internal/config"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

var orderNames = []string{"seen", "archived", "folder", "drop", "state", "size", "delivered", "number", "date", "sender", "amount"}

func parseOrder(name string) (catalog.Order, error) {
	i := slices.Index(orderNames, strings.ToLower(name))
	if i < 0 {
		return 0, usageError{fmt.Errorf("--sort %q is no order; known are %s", name, strings.Join(orderNames, ", "))}
	}
	return []catalog.Order{catalog.BySeen, catalog.ByArchived, catalog.ByFolder, catalog.ByDrop, catalog.ByState, catalog.BySize, catalog.ByDelivered,
		catalog.ByNumber, catalog.ByDate, catalog.BySender, catalog.ByAmount}[i], nil
}

// parseRoute reads the name of a route; empty: any.
func parseRoute(name string) (ledger.Route, error) {
	if r := ledger.Route(strings.ToLower(name)); name == "" || slices.Contains(ledger.Routes(), r) {
		return r, nil
	}
	return "", usageError{fmt.Errorf("--route %q is no route; known are %s", name, strings.Join(routeNames, ", "))}
}

// setTexts sets what is asked of the documents from what a person wrote.
func (f *listFilter) setTexts(kind, number, sender string) (err error) {
	f.Number, f.Sender = catalog.NewQuery(strings.Fields(number)), catalog.NewQuery(strings.Fields(sender))
	f.Type, err = parseType(kind)
	return err
}

// parseType reads the name of a type of documents; empty: any.
func parseType(name string) (string, error) {
	i := slices.IndexFunc(archive.DocumentTypes, func(t string) bool { return strings.EqualFold(t, name) })
	switch {
	case name == "":
		return "", nil
	case i < 0:
		return "", usageError{fmt.Errorf("--type %q is no type; known are %s", name, strings.Join(archive.DocumentTypes, ", "))}
	}
	return archive.DocumentTypes[i], nil
}

// parseAfter reads the key behind which a list begins; empty: none.
func parseAfter(text string) (k archive.Key, err error) {
	if text == "" {
		return k, nil
	}
	if k, err = archive.ParseKey(text); err != nil || k.IsZero() {
		return k, usageError{fmt.Errorf("--after %q is no key; the last key of a page stands below its table, and in each object of --json", text)}
	}
	return k, nil
}

var routeNames = func() (names []string) {
	for _, r := range ledger.Routes() {
		names = append(names, string(r))
	}
	return names
}()

// setTimeBounds sets the bounds of time from what a person wrote.
func (f *listFilter) setTimeBounds(c present.Clock, since, until string) (err error) {
	if f.Since, err = parseBeginning(c, since); err != nil {
		return usageError{fmt.Errorf("--since: %w", err)}
	}
	if f.Until, err = parseEnd(c, until); err != nil {
		return usageError{fmt.Errorf("--until: %w", err)}
	}
	return nil
}

// parseBeginning reads a day, a day with a time, RFC 3339, or how long ago; an empty text is no time. A day is its beginning.
func parseBeginning(c present.Clock, text string) (time.Time, error) { return parseTime(c, text, 0) }

// parseEnd is parseBeginning where a day is its end.
func parseEnd(c present.Clock, text string) (time.Time, error) { return parseTime(c, text, 1) }

func parseTime(c present.Clock, text string, addedDays int) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := config.ParseDuration(text); err == nil {
		return c.Now.Add(-ago), nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, text, c.Location); err == nil {
		return t.AddDate(0, 0, addedDays), nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if t, err := time.ParseInLocation(layout, text, c.Location); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf(`%q is no time; write a day (2026-11-20), a time ("2026-11-20 14:30", 2026-11-20T13:30:00Z) or how long ago (24h, 7d)`, text)
}
