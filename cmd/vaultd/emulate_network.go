package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"vaultd/internal/emulator"
)

// addNetworkFlags adds the flags of the business network.
func addNetworkFlags(f *pflag.FlagSet, o *emulateOptions) {
	n, r := &o.cfg.Network, &o.cfg.Readings.Network
	f.StringVar(&n.Account.Name, "network-user", "", "this `user` alone, with the same secret, may use the network; empty: the main one")
	f.StringVar(&o.received, "received", "", "`folder` with documents that come in (docs/network.md says what is in it)")
	f.StringVar(&n.CreditNotes, "network-credit-notes", "/v2/creditNotes", "`path` of credit notes")
	f.Int64Var(&n.MaxFile, "network-max-file", 200_000_000, "most `bytes` of one file")
	f.DurationVar(&n.DeliverMin, "network-deliver-min", time.Second, "shortest time until a document is delivered, or is not")
	f.DurationVar(&n.DeliverMax, "network-deliver-max", 5*time.Second, "longest time until a document is delivered, or is not")
	f.DurationVar(&n.DecideAfter, "network-decide-after", 5*time.Second, "from there to the word of the recipient")
	f.DurationVar(&n.RejectAfter, "network-reject-after", 72*time.Hour, "from there to a late rejection")
	f.StringArrayVar(&n.UnknownReceivers, "network-unknown-receiver", nil, "`id` of an endpoint that nobody has; repeat for several")
	f.StringArrayVar(&o.outcomes, "network-outcome", nil, "`outcome:rate` of documents without a word in their note; repeat for several")
	f.StringVar(&r.ErrorWrapper, "network-error-wrapper", "", "the object of an error answer is in: error or errors")
	f.StringVar(&r.SendAnswer, "network-send-answer", "", "the answer to a document: empty or json")
	f.StringVar(&r.Files, "network-files", "", "a file is sent as: binary or base64")
	f.StringVar(&r.CreditNoteWord, "network-credit-note-word", "", "credit notes in notifications: CreditNode or CreditNote")
	f.StringVar(&r.Received, "network-received", "", "received documents are announced by: code, type, or code-only (a query with type is refused)")
	f.StringVar(&r.Times, "network-times", "", "times of notifications are in: seconds or milliseconds")
	f.StringVar(&r.RepeatedDelete, "network-repeated-delete", "", "answer for a notification that is acknowledged already: 404 or 200")
	f.StringVar(&r.FileHeaders, "network-file-headers", "", "a file is sent with: type, all (with its name and its encoding), or fileref (the document alone names it)")
	f.StringVar(&r.ReceivedAt, "network-received-at", "", "received documents and their files are known in: both versions of the calls that fetch, or v1 alone")
	f.StringVar(&r.FetchSent, "network-fetch-sent", "", "GET of a document that the client sent itself: served, refused or unknown")
	f.StringVar(&r.Directory, "network-directory", "", "the directory lists the lines that are: valid, or all")
	f.StringVar(&r.Validation, "network-validation", "", "a validation file is named by: both (a property and a link), property or link")
	f.StringVar(&r.ValidationAt, "network-validation-at", "", "a validation file is known below: files, v2 (/v2/files) or v1 (/v1/files)")
	f.DurationVar(&n.ValidationAfter, "network-validation-after", 0, "from the notification that names a validation file until that can be fetched")
	f.StringVar(&r.LinksTo, "network-links-to", "", "base `address` that links begin with; empty: the one that was asked")
}

// parseOutcome reads "outcome:rate", as in "undelivered:0.1".
func parseOutcome(text string) (emulator.OutcomeRate, error) {
	word, number, found := strings.Cut(text, ":")
	rate, err := strconv.ParseFloat(number, 64)
	if !found || err != nil {
		return emulator.OutcomeRate{}, fmt.Errorf("outcome %q is not outcome:rate", text)
	}
	return emulator.OutcomeRate{Outcome: word, Rate: rate}, nil
}
