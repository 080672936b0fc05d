package vaultapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"vaultd/internal/archive"
)

const maxRecord = 4096

// statusRecord is the service's word about one registration.
type statusRecord struct {
	Remote  scalar `json:"bumId"`
	ID      scalar `json:"clientUUID"`
	Updated scalar `json:"lastUpdated"`
	Status  scalar `json:"status"`
	Message scalar `json:"message"`
}

// Status asks about one registration. An *Error with Missing says that the service answered 404.
func (c *Client) Status(ctx context.Context, v archive.VaultID, r archive.RemoteID) (archive.Receipt, error) {
	ans, err := c.get(ctx, "ask for the status", "v1", "vaults", string(v), "documents", string(r), "status")
	if err != nil {
		return archive.Receipt{}, fault(err, byQuestion)
	}
	list, err := records(ans.Body)
	if err != nil || len(list) != 1 {
		return archive.Receipt{}, unreadable("ask for the status", ans, errShape)
	}
	rc, err := receipt(list[0])
	switch {
	case err != nil:
		return archive.Receipt{}, unreadable("ask for the status", ans, err)
	case rc.Remote == "":
		rc.Remote = r // the question names it
	case !strings.EqualFold(string(rc.Remote), string(r)):
		return archive.Receipt{}, unreadable("ask for the status", ans, errors.New("the answer speaks of another bumId"))
	}
	rc.Remote, rc.Date = r, ans.Date()
	return rc, nil
}

// StatusList returns the receipts of StatusWindow.
func (c *Client) StatusList(ctx context.Context, v archive.VaultID) ([]archive.Receipt, error) {
	w, err := c.StatusWindow(ctx, v)
	return w.Receipts, err
}

// unanimous reads the records that say one thing about their bumId.
func unanimous(list []json.RawMessage) []archive.Receipt {
	first := map[archive.RemoteID]archive.Receipt{}
	split := map[archive.RemoteID]bool{}
	var order []archive.RemoteID
	for _, raw := range list {
		rc, err := receipt(raw)
		if err != nil || rc.Remote == "" {
			continue
		}
		if had, seen := first[rc.Remote]; seen {
			split[rc.Remote] = split[rc.Remote] || had.Raw != rc.Raw || had.ID != rc.ID
			continue
		}
		first[rc.Remote] = rc
		order = append(order, rc.Remote)
	}
	var out []archive.Receipt
	for _, r := range order {
		if !split[r] {
			out = append(out, first[r])
		}
	}
	return out
}

// receipt reads one record. A record without a status is none.
func receipt(raw json.RawMessage) (archive.Receipt, error) {
	var s statusRecord
	if err := json.Unmarshal(raw, &s); err != nil || s.Status == "" {
		return archive.Receipt{}, errShape
	}
	rc := archive.Receipt{Word: archive.ParseWord(string(s.Status)), Raw: words(string(s.Status)),
		Updated: parseTime(string(s.Updated)), Message: words(string(s.Message))}
	rc.Record = bytes.Clone(raw[:min(len(raw), maxRecord)])
	if s.Remote != "" {
		remote, err := archive.ParseRemoteID(string(s.Remote))
		if err != nil {
			return archive.Receipt{}, err
		}
		rc.Remote = remote
	}
	if id, err := archive.ParseID(string(s.ID)); err == nil {
		rc.ID = id
	}
	return rc, nil
}
