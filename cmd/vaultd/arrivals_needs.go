package main

import (
	"fmt"
	"time"

	"vaultd/internal/arrivals"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

const (
	longWait      = 24 * time.Hour // after it a received document that waits needs a person
	leastFailures = 2              // of a fault that may pass by itself, before a person is called
)

// waitAdvice says what to do about each cause that only a person can mend.
var waitAdvice = map[string]string{
	arrivals.CauseLost:   "restore received in state_dir from a copy, or give it up",
	arrivals.CauseFolder: "look at received in state_dir and its disk",
	arrivals.CauseDoubt:  "look at service.proxy, or ask the provider for the file; vaultd arrivals take ID takes it as it is",
	arrivals.CauseDrop:   "see to the drop folder, as vaultd status names it",
	causeUnreadable:      "ask the provider and name the request id, or tell its sender with vaultd reject --technical",
}

// causeUnreadable is the code of a call whose answer cannot be read.
const causeUnreadable = "unreadable"

// describeReceivedNeed says what a person has to do about a received document; empty: nothing.
func (v view) describeReceivedNeed(x arrival.Arrival) string {
	step, _, _ := arrival.Due(x, v.receiveRules())
	advice, isForPerson := waitAdvice[x.Cause.Code]
	mayPass := x.Cause.Code == causeUnreadable || x.Cause.Code == arrivals.CauseDoubt
	isLong := v.Now.Sub(x.AnnouncedAt) >= longWait
	switch {
	case step == arrival.NoStep || (!isForPerson || mayPass && x.Attempt < leastFailures) && !isLong:
		return ""
	case v.cfg.Network.ReceiveInto == "":
		return "network.receive_into is empty: name a drop there, or give it up with vaultd arrivals close"
	case x.Cause.Code == "":
		return fmt.Sprintf("it waits for longer than a day to %s: see that vaultd runs", step)
	case !isForPerson:
		advice = "see vaultd doctor, or ask the provider and name the request id"
	}
	// What to do comes first: a long text is cut where it is one of many.
	text := fmt.Sprintf("%s. To %s failed %s: %s", advice, step, present.FormatCount(int(x.Attempt), "time", "times"), sanitize.Name(x.Cause.Text, 300))
	if !x.HandedOnAt.IsZero() {
		text += ". It lies in the drop folder; its notification is not deleted"
	}
	return text
}

// findReceivedNeeds counts the received documents that need a person, and names the first of them with what to do.
func (v view) findReceivedNeeds() (n present.ArrivalNeeds, err error) {
	err = v.ledger.Arrivals(func(x arrival.Arrival) error {
		if x.Kind != arrival.Received {
			return nil
		}
		if need := v.describeReceivedNeed(x); need != "" {
			if n.Count++; len(n.Names) < present.NamedAtMost {
				n.Names = append(n.Names, sanitize.Text(string(x.Item))+": "+need)
			}
		}
		return nil
	}, arrival.Announced, arrival.Fetching, arrival.Held)
	return n, err
}
