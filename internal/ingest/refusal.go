package ingest

import (
	"fmt"
	"strings"

	"vaultd/internal/apicall"
	"vaultd/internal/ledger"
)

// wordRefusal returns the event of a refusal, with its cause. If the refusal
// ends the entry, whoever dropped it reads the cause: what was refused, of a
// file its name, what to do and whose turn it is, and in the last line what IT
// tells the provider. Elsewhere something of it may be at the service, and the
// cause is the fault itself.
func (c *Engine) wordRefusal(e ledger.Entry, file string, fault *apicall.Error, event func(ledger.Cause) ledger.Event) ledger.Event {
	technical := causeOf(fault)
	technical.File = file
	if fault.Plain == nil {
		return event(technical)
	}
	told := technical
	told.Text = composeRefusal(file, fault)
	ev := event(told)
	if next, err := ledger.Transition(e, ev, c.cfg.Now()); err != nil || next.State != ledger.Rejected {
		return event(technical)
	}
	return ev
}

// composeRefusal is a refusal as whoever dropped the folder reads it.
func composeRefusal(file string, fault *apicall.Error) string {
	var b strings.Builder
	b.WriteString(fault.Plain.Head + ". ")
	if file != "" {
		fmt.Fprintf(&b, "%q ", file)
	}
	b.WriteString(fault.Plain.Says + ". " + fault.Plain.Do)
	if !strings.HasSuffix(fault.Plain.Do, ".") {
		b.WriteString(", then move this whole folder back.")
	}
	if fault.Message != "" {
		b.WriteString("\nIn its own words: " + fault.Message)
	}
	return b.String() + "\nFor IT: " + fault.Error()
}
