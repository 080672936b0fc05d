package ledger

import (
	"time"

	"vaultd/internal/archive"
)

// A registration that was given up may still succeed: the service runs a failed job again,
// or the store kept bytes that it refused. Then the document is in the archive twice, and only
// the service can tell. So late questions follow for a month, with growing pauses. Lists that
// are fetched for other reasons are read for such news too.

// lateQuestions are the times, counted from when a registration was given up, at which
// the service is asked about it.
var lateQuestions = [...]time.Duration{
	time.Hour, 6 * time.Hour, 24 * time.Hour, 3 * 24 * time.Hour, 10 * 24 * time.Hour, 30 * 24 * time.Hour,
}

// IsGivenUp reports whether bytes were sent to the registration and no step waits for it any
// more: the service failed it, or the store refused it.
func (r Registration) IsGivenUp() bool { return r.Fate == Lapsed || r.Fate == Declined }

// watchedRegistration returns the registration whose answers are about the i-th one, where that
// one was given up: the last registration with its number, which was given up too or never used.
// It is nil where nothing was sent, where the number has succeeded, or where it is asked about
// for another reason.
func (e *Entry) watchedRegistration(i int) *Registration {
	r := &e.Registrations[i]
	if r.Fate == Unsent || r.Fate == Succeeded {
		return nil
	}
	// The service may give one number twice; its answer is about the last registration with it.
	last := e.findRegistration(r.Ticket.Remote)
	if last.Fate != Unsent && !last.IsGivenUp() {
		return nil
	}
	return last
}

// nextLateQuestionOf returns when the next late question about the i-th registration is
// due: the first one after the last answer. ok is false where none is left.
func (e *Entry) nextLateQuestionOf(i int) (at time.Time, ok bool) {
	last := e.watchedRegistration(i)
	if last == nil {
		return time.Time{}, false
	}
	for _, after := range lateQuestions {
		if at = e.Registrations[i].ClosedAt.Add(after); at.After(last.LastAnswer) {
			return at, true
		}
	}
	return time.Time{}, false
}

// nextLateQuestion returns when the next late question about any registration is due.
func (e *Entry) nextLateQuestion() (at time.Time, ok bool) {
	for i := range e.Listed() {
		if next, is := e.nextLateQuestionOf(i); is && (!ok || next.Before(at)) {
			at, ok = next, true
		}
	}
	return at, ok
}

// isWatched reports whether late questions are asked about r.
func (e *Entry) isWatched(r *Registration) bool {
	for i := range e.Listed() {
		if e.watchedRegistration(i) == r {
			return true
		}
	}
	return false
}

// waitsForProgress reports whether the service is archiving an earlier registration, by its
// last answer. Its end is asked about first, and nothing is registered beside it.
func (e *Entry) waitsForProgress() bool {
	if e.State != Packaged || e.PossibleDouble {
		return false
	}
	for i, r := range e.Registrations {
		if r.isUnderWay() && e.isLatest(i) { // the word is about the last registration of a number
			return true
		}
	}
	return false
}

// asksAgain reports whether the service is asked once more about the package that it failed,
// before the document is registered again: the service may run the job again by itself. It is
// not asked again where it repeated the failure, or repeated it as often as proves it.
func (e *Entry) asksAgain() bool {
	r := e.Current()
	if e.State != Packaged || r == nil || r.Fate != Lapsed || r.EqualAnswers >= neededAnswers {
		return false
	}
	// One more answer after the failure decides. A crash in between changes nothing: both times are stored.
	return !r.LastAnswer.After(r.ClosedAt) || r.LastStatus == archive.Unfamiliar // a word that is not known may be progress
}

// longestSilence bounds how long a question about a failure is repeated that is never answered, before the document is
// registered again, and how far two late questions are apart that are not answered.
const longestSilence = 24 * time.Hour

// recordSilence records that a late question was not answered, and returns the earliest time of the next one. The pause is
// as long as the question is overdue, at most a day. After a month without an answer the question counts as answered, and
// after a day the question about a failure: else an archive that cannot answer would be asked for ever.
func (e *Entry) recordSilence(now time.Time) (next time.Time) {
	// The document must not wait for ever for an archive that does not answer: it is registered again, and a late success
	// of the first package is still noticed by the later questions.
	if r := e.Current(); e.asksAgain() && now.Sub(r.ClosedAt) >= longestSilence {
		r.LastAnswer, r.EqualAnswers = now, neededAnswers
		return next
	}
	for i := range e.Listed() {
		at, ok := e.nextLateQuestionOf(i)
		if !ok || at.After(now) {
			continue
		}
		next = LaterOf(next, now.Add(min(now.Sub(at), longestSilence)))
		if closed := e.Registrations[i].ClosedAt; now.Sub(closed) >= lateQuestions[len(lateQuestions)-1] {
			e.watchedRegistration(i).LastAnswer = now
		}
	}
	// An entry on its way has its own retries: the late questions must not delay them.
	if e.State.IsOpen() {
		return time.Time{}
	}
	return next
}

// DueQuestions returns the registrations to ask about at that time: those whose end is
// not known yet, and those that were given up and whose late question is due.
func (e Entry) DueQuestions(now time.Time) []archive.RemoteID {
	all := e.OpenQuestions()
	for i := range e.Listed() {
		at, ok := e.nextLateQuestionOf(i)
		if e.asksAgain() && e.isCurrent(e.watchedRegistration(i)) {
			at, ok = e.NotBefore, true
		}
		if ok && !at.After(now) {
			all = appendIfNew(all, e.Registrations[i].Ticket.Remote)
		}
	}
	return all
}

// IsNews reports whether a receipt tells of content that the entry does not count yet, although
// no step waits for it. That includes numbers that the entry no longer lists.
func (e Entry) IsNews(rc archive.Receipt) bool {
	if rc.Status != archive.Successful && rc.Status != archive.InProgress || rc.Remote == e.ArchivedRemote {
		return false
	}
	r := e.findRegistration(rc.Remote)
	return r == nil || r.Fate == Unsent || r.IsGivenUp() || rc.Status == archive.Successful && r.Fate != Succeeded
}

// countSuccesses counts the service's numbers under which the document is archived.
func (e *Entry) countSuccesses() int {
	var all []archive.RemoteID
	for _, r := range e.Registrations {
		if r.Fate == Succeeded {
			all = appendIfNew(all, r.Ticket.Remote)
		}
	}
	return len(all)
}

// IsArchivedTwice reports whether the service has certainly archived the document under more
// than one number.
func (e Entry) IsArchivedTwice() bool { return e.countSuccesses() > 1 }
