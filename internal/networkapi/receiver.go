package networkapi

import (
	"context"
	"fmt"
	"io"
	"time"

	"vaultd/internal/archive"
)

// Receiver fetches documents that came in, and says of them that they did.
type Receiver struct{ Client *Client }

// FetchDocument fetches a document, as [Client.FetchDocument] does, and returns
// it as it came with its files.
func (r Receiver) FetchDocument(ctx context.Context, kind archive.NetworkKind, id archive.RemoteID) (raw []byte, files []archive.FileRef, err error) {
	raw, received, err := r.Client.FetchDocument(ctx, kind, id)
	return raw, received.Files, err
}

// FetchFile writes a stored file to w, as [Client.FetchFile] does.
func (r Receiver) FetchFile(ctx context.Context, id archive.FileID, w io.Writer) (archive.FileTold, error) {
	return r.Client.FetchFile(ctx, id, w)
}

// ConfirmReceipt tells the network that a document was received. Only a party to its delivery may do so. Whether the network takes two of them
// for one is not known; two of them say nothing else than one.
func (r Receiver) ConfirmReceipt(ctx context.Context, kind archive.NetworkKind, id archive.RemoteID, at time.Time) error {
	return r.Client.PostNotification(ctx, archive.Notification{Document: id, Kind: kind, Response: "TechnicalAccept", Action: "DeliveryConfirmed", Created: at})
}

// Acknowledge deletes a notification at the network, as [Client.Acknowledge] does.
func (r Receiver) Acknowledge(ctx context.Context, id archive.AcknowledgementID) error {
	return r.Client.Acknowledge(ctx, id)
}

// ListReceived lists the notifications that the network gives as those of received documents, see [Client.Notifications].
func (c *Client) ListReceived(ctx context.Context, kind archive.NetworkKind, sift func([]archive.Notification) ([]archive.Notification, error)) (archive.NotificationList, error) {
	return c.Notifications(ctx, Query{Kind: kind, Received: true, Sift: sift})
}

// DescribeReceived returns what a received document says of itself, in the words of the archive. What it does not tell is empty: a document
// without a number or a date is for a person.
func DescribeReceived(kind archive.NetworkKind, raw []byte) (archive.Document, error) {
	r, err := readReceived(raw)
	if err != nil {
		return archive.Document{}, fmt.Errorf("read a received document: %w", err)
	}
	d := r.Content.Metadata(kind)
	d.FlowDirection = "receiving"
	return d, nil
}
