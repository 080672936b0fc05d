package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/config"
	"vaultd/internal/networkapi"
	"vaultd/internal/present"
)

// nobodysSIREN has a wrong check digit, so no company has it.
const nobodysSIREN = "000000001"

// What the account of the network must be allowed to do.
const (
	mayAskDirectory      = "ask the directory"
	mayListNotifications = "list notifications"
)

// tryNetwork tries whether the business network answers, and whether its
// account is let in. It asks questions that change nothing there: the directory
// for a company that cannot exist, which tells nobody who is asked for, and the
// list of notifications for one of them, which comes again until it is
// acknowledged. Each answer says more beside the other: where one question is
// answered, address and credentials are right.
func (a *app) tryNetwork(ctx context.Context, cfg config.Config) (all []tried) {
	met, err := apicall.Inspect(ctx, networkCallConfig(cfg, a.env))
	for _, c := range met.Certificates {
		all = append(all, tryCertificate(c, present.Clock{Now: time.Now(), Location: cfg.Location}))
	}
	if err != nil {
		t := newFailure("network", "", err.Error(), "look at network.base_url, the network and the proxy; see docs/troubleshooting.md")
		t.code = exitUnavailable
		return append(all, t)
	}
	client, err := newNetworkClient(cfg, a.env)
	if err != nil {
		return append(all, newFailure("network", "", err.Error(), "see network in the configuration"))
	}
	lines, directoryErr := client.Directory(ctx, networkapi.DirectoryQuery{SIREN: nobodysSIREN})
	if directoryErr != nil && (apicall.AsError(directoryErr).Status == 0 || ctx.Err() != nil) {
		return append(all, newNetworkFailure("directory", directoryErr, mayAskDirectory, false)) // no second question: nothing answers
	}
	isWaiting, notificationsErr := client.HasNotifications(ctx)
	// Who does not take the number has looked at it, so he has let the account in.
	hasDirectory := directoryErr == nil || apicall.AsError(directoryErr).Outcome == apicall.Refused
	if hasDirectory {
		all = append(all, judgeDirectory(cfg.Network.BaseURL, lines, directoryErr == nil))
	} else {
		all = append(all, newNetworkFailure("directory", directoryErr, mayAskDirectory, notificationsErr == nil))
	}
	all = append(all, judgeNotifications(isWaiting, notificationsErr, !hasDirectory || cfg.HasNetworkDrop(), hasDirectory))
	if cfg.Network.ReceiveInto != "" && notificationsErr == nil {
		all = append(all, tryReceived(ctx, client, cfg.Network.AnnouncedBy == config.AnnouncedByType))
	}
	return all
}

// tryReceived tries whether received documents are announced as the
// configuration says. It lists what waits, and changes nothing: while nothing
// waits it shows nothing.
func tryReceived(ctx context.Context, client *networkapi.Client, believesList bool) tried {
	const name, isAnother = "received documents", "; ask the provider how received documents are announced"
	onlyThere, hasSent := map[archive.AcknowledgementID]bool{}, false
	_, err := client.Notifications(ctx, networkapi.Query{Received: true, Sift: func(page []archive.Notification) ([]archive.Notification, error) {
		for _, n := range page {
			hasSent = hasSent || n.IsAboutSent()
			if n.Kind != "" && !n.Announces() {
				onlyThere[n.AcknowledgementID] = true
			}
		}
		return nil, nil
	}})
	switch {
	case err != nil && believesList:
		return newWarning("network", name, "the list of received documents cannot be read: "+err.Error(), "set network.announced_by to code if the network does not know this list"+isAnother)
	case hasSent && believesList:
		return newWarning("network", name, "the list of received documents has notifications about sent ones, so the network ignores the question, and network.announced_by: type is not followed",
			"set network.announced_by to code"+isAnother)
	case err != nil || hasSent || believesList || len(onlyThere) == 0:
		return newSuccess("network", name, "what is announced now fits network.announced_by")
	}
	other, err := client.Notifications(ctx, networkapi.Query{Sift: func(page []archive.Notification) ([]archive.Notification, error) {
		for _, n := range page {
			delete(onlyThere, n.AcknowledgementID)
		}
		return nil, nil
	}})
	if err != nil || !other.Whole || len(onlyThere) == 0 {
		return newSuccess("network", name, "what is announced now fits network.announced_by")
	}
	return newWarning("network", name, fmt.Sprintf("%s only in the list of received documents, without a code that announces one: they are not received", present.FormatCount(len(onlyThere), "notification stands", "notifications stand")),
		"set network.announced_by to type if that list has nothing else"+isAnother)
}

// judgeDirectory says what the answer of the directory means; wasTaken says that it took the number.
func judgeDirectory(address string, lines []networkapi.DirectoryLine, wasTaken bool) tried {
	text := address + " answers, and its directory of France accepts the credentials"
	switch {
	case !wasTaken:
		return newSuccess("network", "directory", text+": it does not take SIREN "+nobodysSIREN+", whose check digit is wrong")
	case len(lines) > 0:
		return newWarning("network", "directory", fmt.Sprintf("%s, but it has %s for SIREN %s, whose check digit is wrong, so no company has it", text, present.FormatCount(len(lines), "line", "lines"), nobodysSIREN),
			"ask the provider which question its directory answers; until then compare each line of vaultd directory with what you asked for")
	}
	return newSuccess("network", "directory", text+": it has no line for SIREN "+nobodysSIREN+", whose check digit is wrong")
}

// judgeNotifications says what the answer of the list of notifications means.
// Without it nobody hears what became of a sent document. If nothing is sent
// (areNeeded is false) what is wrong with notifications alone is a warning.
func judgeNotifications(isWaiting bool, err error, areNeeded, hasDirectory bool) tried {
	switch {
	case err == nil && isWaiting:
		return newSuccess("network", "notifications", "the list of notifications accepts the credentials; it is not empty, and nothing was acknowledged")
	case err == nil:
		return newSuccess("network", "notifications", "the list of notifications accepts the credentials; it is empty")
	}
	t := newNetworkFailure("notifications", err, mayListNotifications, hasDirectory)
	if areNeeded {
		t.Text += "; without notifications nobody hears what became of sent documents"
		return t
	}
	t.Result, t.Text = tryWarn, t.Text+"; only drops of route network need notifications, and none is configured"
	return t
}

// newNetworkFailure is a question that was not answered. isOtherAnswered says that the other one was: then neither the address nor the
// credentials are to blame.
func newNetworkFailure(name string, err error, may string, isOtherAnswered bool) tried {
	e := apicall.AsError(err)
	do := adviseOnNetwork(e, may)
	if isOtherAnswered && (e.Denied || e.Status == http.StatusNotFound) {
		do = "network.base_url and network.auth are right, because the other question was answered: ask the provider to enable this account to " + may + ", and name the request id"
	}
	t := newFailure("network", name, err.Error(), do)
	t.code = exitCodeOfRemote(e)
	return t
}
