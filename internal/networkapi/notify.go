package networkapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// Acknowledge says to the network that a notification was taken, so it is not listed again. It is called only for a notification
// that is committed here. One that the network does not know is acknowledged already: that is a success.
//
// After an unknown outcome it may be called again.
func (c *Client) Acknowledge(ctx context.Context, id archive.AcknowledgementID) error {
	const op = "acknowledge a notification"
	if _, err := archive.ParseAcknowledgementID(string(id)); err != nil {
		return requestError(op, err.Error())
	}
	// This is the DELETE. If the process dies in it, the notification may be acknowledged. It is committed by then, so nothing is
	// lost; the next start acknowledges again, and is answered by 404.
	ans, err := c.api.Do(ctx, apicall.Request{Op: op, Method: http.MethodDelete, Path: append(splitPath(notificationsPath), string(id)), Limit: smallAnswer, Header: acceptJSON})
	if err != nil {
		if e := apicall.AsError(err); e.Status == http.StatusNotFound && !e.IsWebPage() {
			return nil
		}
		return err
	}
	defer ans.Release()
	return checkAccepted(op, ans)
}

// pair is a response code with an action code.
type pair struct{ response, action string }

// mayBePosted are the pairs that a client may post.
var mayBePosted = []pair{
	{"TechnicalAccept", "DeliveryConfirmed"},
	{"TechnicalReject", "Undelivered"},
	{"BusinessAccept", "DocumentAccepted"},
	{"BusinessReject", "DocumentRejected"},
}

// PostNotification posts a notification about a document, in one POST. Of n, Document, Kind, Response, Action, Properties, Created
// and Description are sent, where they are set; nothing else may be in it. It is not known whether the network takes a second one of
// the same kind for the first: after an unknown outcome only the caller knows whether a repetition does harm.
func (c *Client) PostNotification(ctx context.Context, n archive.Notification) error {
	const op = "post a notification"
	body, err := composeNotification(n)
	if err != nil {
		return requestError(op, err.Error())
	}
	// This is the POST. If the process dies in it, the network may have the notification. The intent was committed before.
	ans, err := c.api.Do(ctx, apicall.Request{Op: op, Method: http.MethodPost, Path: splitPath(notificationsPath), Body: body, Limit: smallAnswer, Header: sendJSON})
	if err != nil {
		return judgeRefusal(err)
	}
	defer ans.Release()
	return checkAccepted(op, ans)
}

// composeNotification returns the body of a notification. The same notification gives the same bytes. Assumption: its time is in
// seconds, as a text, which is the type that the specification gives it.
func composeNotification(n archive.Notification) ([]byte, error) {
	switch {
	case n.Document == "":
		return nil, errors.New("the notification names no document")
	case !slices.Contains(mayBePosted, pair{n.Response, n.Action}):
		return nil, errors.New("a client may not post this kind of notification")
	case n.Created.Unix() <= 0:
		return nil, errors.New("the notification has no time")
	case len(n.Description) > MaxDescription:
		return nil, errors.New("the description is too long")
	}
	type property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	var properties []property
	for _, p := range n.Properties {
		properties = append(properties, property(p))
	}
	return json.Marshal(struct {
		BumID       string     `json:"bumid"`
		Type        string     `json:"documentType,omitempty"`
		Response    string     `json:"responseCode"`
		Action      string     `json:"actionCode"`
		Properties  []property `json:"additionalActionProperties,omitempty"`
		Created     string     `json:"notificationCreated"`
		Description string     `json:"description,omitempty"`
	}{string(n.Document), n.Kind.NotificationWord(), n.Response, n.Action, properties, strconv.FormatInt(n.Created.Unix(), 10), n.Description})
}
