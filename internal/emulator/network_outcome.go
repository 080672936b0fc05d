package emulator

import (
	"slices"
	"time"
)

// networkOutcomes are the words for what becomes of a document. [OutcomeRate] says what each means.
var networkOutcomes = []string{"delivered", "undelivered", "invalid", "checked", "late-reject", "accepted-by-recipient", "rejected-by-recipient", "delayed",
	"unknown-pair", "services", "email", "mail", "silent"}

// drawOutcome draws what becomes of a document whose note does not say it. The caller holds mu.
func (s *Server) drawOutcome() []string {
	for _, o := range s.cfg.Network.Outcomes {
		if s.drawChance() < o.Rate {
			return []string{o.Outcome}
		}
	}
	return nil
}

// planNotices returns every notification that there will ever be about a document, each with its time. So nothing has to happen later,
// and a restart forgets none. The caller holds mu.
func (s *Server) planNotices(bumID, kind string, outcomes []string, now time.Time) (all []NetworkNotice) {
	chosen := func(word string) bool { return slices.Contains(outcomes, word) }
	if chosen("silent") {
		return nil
	}
	n := s.cfg.Network
	took := s.drawDuration(n.DeliverMin, n.DeliverMax)
	end := now.Add(took)
	add := func(at time.Time, responseCode, actionCode string, properties ...NoticeProperty) {
		all = append(all, NetworkNotice{AcknowledgementID: s.newUUID(), BumID: bumID, DocumentType: kind, At: at,
			ResponseCode: responseCode, ActionCode: actionCode, Properties: properties})
	}
	add(now, "TechnicalAccept", "ReceivedForProcessing")
	if chosen("delayed") {
		add(now.Add(took/2), "TechnicalInformation", "DeliveryDelayed")
	}
	if chosen("unknown-pair") {
		add(now.Add(took/2), "TechnicalInformation", "ConversionStarted")
	}
	switch {
	case chosen("undelivered"):
		add(end, "TechnicalReject", "Undelivered")
		return all
	case chosen("invalid"):
		add(end, "TechnicalReject", "InvalidContent", NoticeProperty{validationFileReference, s.drawHex(12)})
		return all
	}
	properties := []NoticeProperty{{"DeliveryMeansCode", deliveryMeans(outcomes)}}
	if chosen("checked") {
		properties = append(properties, NoticeProperty{validationFileReference, s.drawHex(12)})
	}
	add(end, "TechnicalAccept", "Delivered", properties...)
	if chosen("services") {
		add(end, "BusinessInformation", "EligibleForEarlyPayment")
		add(end, "BusinessInformation", "NotEligibleForEarlyPayment")
		add(end, "BusinessAccept", "RequestForEarlyPayment")
		add(end, "BusinessInformation", "DiscountCreditNoteAvailable")
		add(end, "BusinessReject", "RepaymentFailed")
	}
	if chosen("accepted-by-recipient") {
		add(end.Add(n.DecideAfter), "BusinessAccept", "DocumentAccepted")
	}
	if chosen("rejected-by-recipient") {
		add(end.Add(n.DecideAfter), "BusinessReject", "DocumentRejected")
	}
	if chosen("late-reject") {
		add(end.Add(n.RejectAfter), "TechnicalReject", "Undelivered")
	}
	return all
}

// validationFileReference is the property that names a validation file.
const validationFileReference = "ValidationFileReference"

func deliveryMeans(outcomes []string) string {
	switch {
	case slices.Contains(outcomes, "email"):
		return "EmailDelivery"
	case slices.Contains(outcomes, "mail"):
		return "MailDelivery"
	}
	return "ElectronicDelivery"
}

// descriptionOf returns the free text of a notification.
func descriptionOf(actionCode string) string {
	switch actionCode {
	case "Undelivered":
		return "The document could not be delivered to the recipient."
	case "InvalidContent":
		return "The content of the document is invalid."
	case "DocumentRejected":
		return "The recipient rejected the document."
	}
	return ""
}
