package archive

import (
	"fmt"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// Two documents bear one number where a bookkeeper would say so, and in no other case.
func TestNumberDigest_WhatABookkeeperTakesForOneNumber(t *testing.T) {
	first := Document{Type: "Invoice", Number: "RE-é12", Date: "2026-10-31T00:00:00Z", SenderName: "Müller GmbH", Amount: "10.00"}
	for name, row := range map[string]struct {
		change func(*Document)
		same   bool
	}{
		"OtherAmount":      {func(d *Document) { d.Amount = "11.00" }, true},
		"OtherType":        {func(d *Document) { d.Type = "CreditNote" }, true},
		"SpaceAround":      {func(d *Document) { d.Number, d.SenderName = " RE-é12\t", "Müller GmbH " }, true},
		"OtherCase":        {func(d *Document) { d.Number, d.SenderName = "re-É12", "MÜLLER gmbh" }, true},
		"OtherUnicodeForm": {func(d *Document) { d.Number, d.SenderName = "RE-e\u030112", "Mu\u0308ller GmbH" }, true},
		"TimeOfDay":        {func(d *Document) { d.Date = "2026-10-31T08:39:03Z" }, true},
		"OtherNumber":      {func(d *Document) { d.Number = "RE-é13" }, false},
		"SpaceWithin":      {func(d *Document) { d.Number = "RE -é12" }, false},
		"OtherDay":         {func(d *Document) { d.Date = "2026-11-01T00:00:00Z" }, false},
		"OtherSender":      {func(d *Document) { d.SenderName = "Huber GmbH" }, false},
		"WithIdentifiers":  {func(d *Document) { d.SenderIDs = []string{"DE1"} }, false},
	} {
		other := first
		row.change(&other)
		kit.Want(t, name+": the same", other.NumberDigest("V1") == first.NumberDigest("V1"), row.same)
	}
	kit.Check(t, first.NumberDigest("V1") != first.NumberDigest("V2"), "the same number in another vault")
	ids, turned := first, first
	ids.SenderIDs, turned.SenderIDs, turned.SenderName = []string{"DE1", "HRB 2"}, []string{"hrb 2", "DE1"}, "Mueller"
	kit.Want(t, "identifiers in another order are another sender", ids.NumberDigest("V1"), turned.NumberDigest("V1"))
	joined := first
	if joined.SenderIDs = []string{"DE1HRB 2"}; joined.NumberDigest("V1") == ids.NumberDigest("V1") {
		t.Error("two identifiers are one")
	}
}

func TestHasStrangeDate(t *testing.T) {
	berlin := kit.Value(time.LoadLocation("Europe/Berlin"))(t)
	now := time.Date(2026, 11, 20, 23, 30, 0, 0, time.UTC) // the 21st in Berlin
	for date, strange := range map[string]bool{
		"2026-11-20T00:00:00Z": false, "2026-11-22T22:59:59Z": false, "2026-11-23T00:00:00Z": true, "2062-11-20T00:00:00Z": true,
		"1990-01-01T00:00:00Z": false, "1989-12-31T23:59:59Z": true, "0206-11-20T00:00:00Z": true, "": false,
	} {
		kit.Want(t, fmt.Sprintf("%q", date), (Document{Date: date}).HasStrangeDate(now.In(berlin)), strange)
	}
	// Midnight of a day here, and any other time that is another day here.
	newYork := kit.Value(time.LoadLocation("America/New_York"))(t)
	for _, row := range []struct {
		date string
		loc  *time.Location
		day  string
	}{
		{"2025-12-31T23:00:00Z", berlin, "2026-01-01"}, {"2026-06-30T22:00:00Z", berlin, "2026-07-01"}, {"2026-06-30T23:59:59Z", berlin, "2026-07-01"},
		{"2026-06-30T21:59:59Z", berlin, ""}, {"2025-12-31T23:00:00Z", time.UTC, ""}, {"2026-01-01T00:00:00Z", newYork, ""}, {"2026-01-01T00:00:00Z", berlin, ""},
		{"2026-01-01T05:00:00Z", newYork, ""}, {"2026-01-01T03:00:00Z", newYork, "2025-12-31"}, {"2026-01-01", berlin, ""}, {"", berlin, ""},
	} {
		name := row.date + " in " + row.loc.String()
		kit.Want(t, name, OtherDay(row.date, row.loc), row.day)
		kit.Want(t, name+" is strange", Document{Date: row.date}.HasStrangeDate(now.In(row.loc)), row.day != "")
	}
	kit.Check(t, (Document{Date: "2026-11-22T00:00:00Z"}).HasStrangeDate(now),
		"the day after tomorrow in UTC is believed")
}
