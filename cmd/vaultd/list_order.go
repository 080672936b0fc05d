package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"vaultd/internal/catalog"
	"vaultd/internal/config"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

var orderNames = []string{"seen", "archived", "folder", "drop", "state", "size", "delivered"}

func parseOrder(name string) (catalog.Order, error) {
	i := slices.Index(orderNames, strings.ToLower(name))
	if i < 0 {
		return 0, usageError{fmt.Errorf("--sort %q is no order; known are %s", name, strings.Join(orderNames, ", "))}
	}
	return []catalog.Order{catalog.BySeen, catalog.ByArchived, catalog.ByFolder, catalog.ByDrop, catalog.ByState, catalog.BySize, catalog.ByDelivered}[i], nil
}

// parseRoute reads the name of a route; empty: any.
func parseRoute(name string) (ledger.Route, error) {
	switch r := ledger.Route(strings.ToLower(name)); r {
	case "", ledger.Vault, ledger.PDF:
		return r, nil
	}
	return "", usageError{fmt.Errorf("--route %q is no route; known are %s", name, strings.Join(routeNames, ", "))}
}

var routeNames = []string{string(ledger.Vault), string(ledger.PDF)}

// setTimeBounds sets the bounds of time from what a person wrote.
func (f *listFilter) setTimeBounds(c present.Clock, since, until string) (err error) {
	if f.Since, err = parseTime(c, since, false); err != nil {
		return usageError{fmt.Errorf("--since: %w", err)}
	}
	if f.Until, err = parseTime(c, until, true); err != nil {
		return usageError{fmt.Errorf("--until: %w", err)}
	}
	return nil
}

// parseTime reads a day, a day with a time, RFC 3339, or how long ago; an empty text is no time. endOfDay gives the end of
// a day instead of its beginning.
func parseTime(c present.Clock, text string, endOfDay bool) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := config.ParseDuration(text); err == nil {
		return c.Now.Add(-ago), nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, text, c.Location); err == nil {
		if endOfDay {
			t = t.AddDate(0, 0, 1)
		}
		return t, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if t, err := time.ParseInLocation(layout, text, c.Location); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf(`%q is no time; write a day (2026-11-20), a time ("2026-11-20 14:30", 2026-11-20T13:30:00Z) or how long ago (24h, 7d)`, text)
}
