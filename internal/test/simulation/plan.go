package simulation

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"vaultd/internal/emulator"
)

// StrikeAt strikes the n-th of the operations that match picks, once.
func StrikeAt(n int, b Blow, match func(Op) bool) Plan {
	return func(op Op) Strike {
		if !match(op) {
			return Strike{}
		}
		if n--; n != 0 {
			return Strike{}
		}
		return Strike{Blow: b}
	}
}

// class is one way in which things go wrong, as a simulation mixes them.
type class struct {
	seam   Seam
	name   string // of the operation; empty: every one of the seam
	rarest float64
	often  float64 // the rate lies between the two
	strike func(*rand.Rand) Strike
}

func strikeWith(b Blow) func(*rand.Rand) Strike {
	return func(*rand.Rand) Strike { return Strike{Blow: b} }
}

func strikeCallWith(f emulator.Fault) func(*rand.Rand) Strike {
	return func(*rand.Rand) Strike { return Strike{Call: f} }
}

func answerWith(code int) func(*rand.Rand) Strike {
	return strikeCallWith(emulator.Fault{Kind: emulator.Status, Status: code})
}

func upTo(r *rand.Rand, d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }

// classes are what the simulation knows to do in every world.
var classes = []class{
	{Files, "", 0.0003, 0.01, strikeWith(Fail)},
	{Files, "", 0.0003, 0.01, strikeWith(FailDone)},
	{Files, "", 0.0003, 0.003, strikeWith(Die)},
	{Files, "", 0.0003, 0.003, strikeWith(DieDone)},
	{Commits, "", 0.0003, 0.003, strikeWith(Fail)},
	{Commits, "", 0.0003, 0.003, strikeWith(FailDone)},
	{Commits, "", 0.0003, 0.003, strikeWith(Die)},
	{Commits, "", 0.0003, 0.003, strikeWith(DieDone)},
	{Calls, "", 0.001, 0.01, strikeWith(Die)},
	{Calls, "", 0.001, 0.01, strikeWith(DieDone)},
	{Calls, "", 0.01, 0.3, strikeWith(Fail)},
	{Calls, "", 0.01, 0.3, strikeWith(FailDone)},
	{Calls, "", 0.01, 0.2, answerWith(500)},
	{Calls, "", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.Status, Status: 504, IsAfterWork: true})},
	{Calls, "", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.Status, Status: 503, RetryAfter: 40 * time.Second})},
	{Calls, "", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.Status, Status: 429, RetryAfter: 3 * time.Minute, RetryAfterDate: true})},
	{Calls, "", 0.01, 0.1, answerWith(401)},
	{Calls, "", 0.01, 0.1, answerWith(403)},
	{Calls, "", 0.01, 0.1, answerWith(404)},
	{Calls, "", 0.01, 0.2, answerWith(502)},
	{Calls, "", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.Refuse})},
	{Calls, "", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.HTML, IsAfterWork: true})},
	{Calls, "", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.Cut})},
	{Calls, "", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.Garble})},
	{Calls, "", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.Truncate})},
	{Calls, "", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.Empty})},
	{Calls, "", 0.01, 0.2, answerLate(90 * time.Second)},
	{Calls, "upload", 0.01, 0.2, answerLate(20 * time.Minute)},
	{Calls, "upload", 0.01, 0.2, func(r *rand.Rand) Strike {
		return Strike{Call: emulator.Fault{Kind: emulator.Trickle, DelayAfter: upTo(r, 10*time.Minute)}}
	}},
	{Calls, "upload", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.CutRequest})},
	{Calls, "upload", 0.01, 0.1, strikeCallWith(emulator.Fault{Kind: emulator.DeadToken})},
	{Calls, "upload", 0.01, 0.1, strikeCallWith(emulator.Fault{Kind: emulator.Vanish})},
	{Calls, "upload", 0.01, 0.2, lagBehind(emulator.None)},
	{Calls, "upload", 0.01, 0.2, lagBehind(emulator.Abort)},
	{Calls, "register", 0.01, 0.2, lagBehind(emulator.None)},
	{Calls, "register", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.MissingAnswer})},
	{Calls, "register", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.MissingURL})},
	{Calls, "register", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.ExtraAnswer})},
	{Calls, "register", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.ForeignAnswer})},
	{Calls, "register", 0.002, 0.05, strikeCallWith(emulator.Fault{Kind: emulator.DoubleBumID})},
	{Clock, "", 0.00001, 0.0003, strikeWith(Fail)},
	{Clock, "", 0.00001, 0.0003, strikeWith(FailDone)},
	{Calls, "index", 0.01, 0.3, strikeCallWith(emulator.Fault{Kind: emulator.ShortPage})},
	{Calls, "index", 0.01, 0.3, strikeCallWith(emulator.Fault{Kind: emulator.EmptyPage})},
	{Calls, "index", 0.01, 0.3, strikeCallWith(emulator.Fault{Kind: emulator.RepeatPage})},
	{Calls, "index", 0.01, 0.3, strikeCallWith(emulator.Fault{Kind: emulator.CirclePage})},
	{Packages, "", 0.01, 0.3, strikeWith(Fail)},
	{Packages, "", 0.01, 0.3, damageLater(Fail)},
	{Packages, "", 0.01, 0.1, damageLater(FailDone)},
	{Calls, "upload", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.Early})},
	{Calls, "upload", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.Early, IsAfterWork: true})},
	{Calls, "", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.ErrorDocument})},
	{Calls, "", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.ErrorDocument, IsAfterWork: true})},
	{Calls, "upload", 0.01, 0.2, func(r *rand.Rand) Strike {
		return Strike{Call: emulator.Fault{Kind: emulator.Rerun, RerunAfter: upTo(r, lateAtMost)}}
	}},
	{Calls, "upload", 0.01, 0.1, func(r *rand.Rand) Strike {
		return Strike{Call: emulator.Fault{Kind: emulator.Status, Status: []int{400, 403, 409, 412}[r.IntN(4)], IsAfterWork: true}}
	}},
	{Calls, "register", 0.002, 0.05, strikeCallWith(emulator.Fault{Kind: emulator.SharedAddress})},
	{Calls, "register", 0.002, 0.05, strikeCallWith(emulator.Fault{Kind: emulator.RepeatedAddress})},
	{Calls, "upload", 0.002, 0.05, strikeCallWith(emulator.Fault{Kind: emulator.RedirectAway})},
	{Calls, "status", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.Huge, PaddingSize: 1 << 20})},
	{Calls, "", 0.001, 0.05, strikeCallWith(emulator.Fault{Kind: emulator.RevokeTokens})},
	{Calls, "", 0.01, 0.1, strikeCallWith(emulator.Fault{Kind: emulator.Status, Status: 429, RetryAfter: 24 * time.Hour})},
	{Calls, "upload", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.Status, Status: 503, RetryAfter: time.Hour})},
	{Calls, "register", 0.01, 0.2, func(r *rand.Rand) Strike {
		return Strike{Call: emulator.Fault{Kind: emulator.Unaskable, Status: []int{400, 404, 422, 502}[r.IntN(4)]}}
	}},
}

// damageLater damages a package at some time after it was sealed. Most are sent within seconds, some wait for hours.
func damageLater(b Blow) func(*rand.Rand) Strike {
	return func(r *rand.Rand) Strike {
		most := time.Duration(float64(time.Second) * math.Pow(3600, r.Float64()))
		return Strike{Blow: b, Call: emulator.Fault{Delay: 1 + upTo(r, most)}}
	}
}

// lateAtMost is how long after its failure a job that runs again succeeds at most: the question that is asked six hours
// after the failure was heard finds it.
const lateAtMost = 5 * time.Hour

// answerLate makes a call slow before and after its work.
func answerLate(most time.Duration) func(*rand.Rand) Strike {
	return func(r *rand.Rand) Strike {
		return Strike{Call: emulator.Fault{Delay: upTo(r, most), DelayAfter: upTo(r, most)}}
	}
}

// lagBehind makes what a call did show only later, though well before anybody may conclude
// from its absence.
func lagBehind(k emulator.Kind) func(*rand.Rand) Strike {
	return func(r *rand.Rand) Strike {
		return Strike{Call: emulator.Fault{Kind: k, IsAfterWork: true, VisibleAfter: upTo(r, 6*time.Hour)}}
	}
}

// rated is a class that is on in a run, and how often it strikes.
type rated struct {
	Class int // in allClasses
	Rate  float64
}

// pdfClasses are the further ones of a world with drops of single PDFs. That the store says yes and keeps nothing is not among them: nobody
// can ever know that.
var pdfClasses = []class{
	{Calls, "pdf-register", 0.01, 0.2, answerLate(20 * time.Minute)},
	{Calls, "pdf-register", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.MissingURL})},
	{Calls, "pdf-register", 0.002, 0.05, strikeCallWith(emulator.Fault{Kind: emulator.DoubleBumID})},
	{Calls, "pdf-register", 0.002, 0.05, strikeCallWith(emulator.Fault{Kind: emulator.SharedAddress})},
	{Calls, "pdf-register", 0.002, 0.05, strikeCallWith(emulator.Fault{Kind: emulator.RepeatedAddress})},
	{Calls, "pdf-register", 0.01, 0.1, func(r *rand.Rand) Strike {
		return Strike{Call: emulator.Fault{Kind: emulator.Status, Status: []int{400, 422}[r.IntN(2)], IsAfterWork: r.IntN(2) == 0}}
	}},
	{Calls, "pdf-upload", 0.01, 0.2, answerLate(80 * time.Minute)},
	{Calls, "pdf-upload", 0.01, 0.2, func(r *rand.Rand) Strike {
		return Strike{Call: emulator.Fault{Kind: emulator.Trickle, DelayAfter: upTo(r, 10*time.Minute)}}
	}},
	{Calls, "pdf-upload", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.CutRequest})},
	{Calls, "pdf-upload", 0.01, 0.1, strikeCallWith(emulator.Fault{Kind: emulator.DeadToken})},
	{Calls, "pdf-upload", 0.01, 0.1, func(r *rand.Rand) Strike {
		return Strike{Call: emulator.Fault{Kind: emulator.Status, Status: []int{400, 403, 409, 412, 500, 503}[r.IntN(6)], IsAfterWork: true}}
	}},
	{Calls, "pdf-upload", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.Status, Status: 503, RetryAfter: time.Hour})},
	{Calls, "pdf-upload", 0.002, 0.05, strikeCallWith(emulator.Fault{Kind: emulator.RedirectAway})},
}

// extractClasses are the further ones of a world that takes extracts in.
var extractClasses = []class{
	{Calls, "extract-fetch", 0.01, 0.2, answerLate(20 * time.Minute)},
	{Calls, "extract-fetch", 0.01, 0.2, func(r *rand.Rand) Strike {
		return Strike{Call: emulator.Fault{Kind: emulator.Trickle, DelayAfter: upTo(r, 10*time.Minute)}}
	}},
	{Calls, "extract-fetch", 0.05, 0.3, strikeCallWith(emulator.Fault{Kind: emulator.Cut})},
	{Calls, "extract-fetch", 0.05, 0.3, strikeCallWith(emulator.Fault{Kind: emulator.Truncate})},
	{Calls, "extract-acknowledge", 0.05, 0.3, strikeWith(FailDone)},
	{Calls, "extract-acknowledge", 0.02, 0.2, strikeWith(DieDone)},
	{Calls, "extract-acknowledge", 0.02, 0.2, answerWith(404)},
	{Calls, "extract-list", 0.02, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.Empty})},
}

// networkClasses are the further ones of a world with drops for the business network. That the network refuses a document and keeps it all
// the same is not among them: nobody can know that before it tells.
var networkClasses = []class{
	{Calls, "network-file", 0.01, 0.2, answerLate(20 * time.Minute)},
	{Calls, "network-file", 0.01, 0.2, strikeCallWith(emulator.Fault{Kind: emulator.CutRequest})},
	{Calls, "network-file", 0.05, 0.3, strikeCallWith(emulator.Fault{Kind: emulator.Coded, IsAfterWork: true})},
	{Calls, "network-send", 0.05, 0.3, strikeWith(FailDone)},
	{Calls, "network-send", 0.02, 0.1, strikeWith(DieDone)},
	{Calls, "network-send", 0.05, 0.3, strikeCallWith(emulator.Fault{Kind: emulator.Coded, IsAfterWork: true})},
	{Calls, "network-send", 0.02, 0.1, strikeCallWith(emulator.Fault{Kind: emulator.Coded, Code: "Error.004.0002"})},
	{Calls, "network-send", 0.02, 0.1, answerWith(400)},
	{Calls, "network-send", 0.1, 0.6, func(r *rand.Rand) Strike {
		return Strike{Call: emulator.Fault{VisibleAfter: upTo(r, 96*time.Hour)}}
	}},
	{Calls, "network-notices", 0.1, 0.9, strikeCallWith(emulator.Fault{Kind: emulator.HideNotices})},
	{Calls, "network-notices", 0.05, 0.5, strikeCallWith(emulator.Fault{Kind: emulator.ShowOldOnes})},
	{Calls, "network-notices", 0.05, 0.5, strikeCallWith(emulator.Fault{Kind: emulator.SwapNotices})},
	{Calls, "network-notices", 0.02, 0.1, strikeCallWith(emulator.Fault{Kind: emulator.RepeatNotice})},
	{Calls, "network-notices", 0.02, 0.3, strikeCallWith(emulator.Fault{Kind: emulator.RepeatPage})},
	{Calls, "network-notices", 0.02, 0.3, strikeCallWith(emulator.Fault{Kind: emulator.EmptyPage})},
	{Calls, "network-notices", 0.02, 0.3, strikeCallWith(emulator.Fault{Kind: emulator.ShortPage})},
	{Calls, "network-notices", 0.02, 0.3, strikeCallWith(emulator.Fault{Kind: emulator.WrongMore})},
	{Calls, "network-acknowledge", 0.05, 0.4, strikeWith(FailDone)},
	{Calls, "network-acknowledge", 0.02, 0.2, strikeWith(DieDone)},
	{Calls, "network-acknowledge", 0.02, 0.2, answerWith(404)},
	{Calls, "network-validation-file", 0.1, 0.9, answerWith(503)},
	{Calls, "network-validation-file", 0.1, 0.5, strikeCallWith(emulator.Fault{Kind: emulator.Truncate})},
	{Calls, "network-validation-file", 0.1, 0.5, strikeCallWith(emulator.Fault{Kind: emulator.HTML})},
	{Calls, "network-validation-file", 0.05, 0.3, strikeWith(DieDone)},
}

// receiveClasses are the further ones of a world that receives documents over the business network.
var receiveClasses = []class{
	{Calls, "network-fetch", 0.01, 0.2, answerLate(20 * time.Minute)},
	{Calls, "network-fetch", 0.05, 0.3, strikeCallWith(emulator.Fault{Kind: emulator.Truncate})},
	{Calls, "network-fetch", 0.05, 0.3, strikeWith(DieDone)},
	{Calls, "network-fetch-file", 0.01, 0.2, answerLate(20 * time.Minute)},
	{Calls, "network-fetch-file", 0.05, 0.3, strikeCallWith(emulator.Fault{Kind: emulator.Cut})},
	{Calls, "network-fetch-file", 0.05, 0.3, strikeCallWith(emulator.Fault{Kind: emulator.Truncate})},
	{Calls, "network-fetch-file", 0.05, 0.3, strikeCallWith(emulator.Fault{Kind: emulator.HTML})},
	{Calls, "network-fetch-file", 0.05, 0.3, strikeCallWith(emulator.Fault{Kind: emulator.Empty})},
	{Calls, "network-fetch-file", 0.02, 0.2, strikeWith(DieDone)},
	{Calls, "network-notify", 0.05, 0.4, strikeWith(FailDone)},
	{Calls, "network-notify", 0.02, 0.2, strikeWith(DieDone)},
}

// allClasses are those of every world, and then the further ones, each group from its place on.
var allClasses = slices.Concat(classes, pdfClasses, extractClasses, networkClasses, receiveClasses)

var (
	firstPDF     = len(classes)
	firstExtract = firstPDF + len(pdfClasses)
	firstNetwork = firstExtract + len(extractClasses)
	firstReceive = firstNetwork + len(networkClasses)
)

// drawMix switches each class on with an even chance, and gives it a rate of its own. Fixed
// rates would hide what only shows when one thing goes wrong often and all others never. from and to are places in allClasses. All classes of
// a seam together have a bound, drawn for the calls, or nothing would ever go well.
func drawMix(r *rand.Rand, from, to int) (mix []rated) {
	all := map[Seam]float64{}
	for i, c := range allClasses[from:to] {
		rate := c.rarest * math.Pow(c.often/c.rarest, r.Float64())
		if r.IntN(2) == 0 {
			mix = append(mix, rated{from + i, rate})
			all[c.seam] += rate
		}
	}
	most := map[Seam]float64{Files: 0.02, Commits: 0.01, Clock: 0.001, Packages: 0.5, Calls: 0.01 * math.Pow(60, r.Float64())}
	for i, c := range mix {
		if seam := allClasses[c.Class].seam; all[seam] > most[seam] {
			mix[i].Rate *= most[seam] / all[seam]
		}
	}
	return mix
}

// planMix returns the plan of a mix. Whether a class strikes an operation depends on the seed,
// the class and the number of the operation among its like, and on nothing else: leaving
// a class out changes nothing about the others. hits counts the strikes of each class.
func planMix(seed uint64, mix []rated, hits []int) Plan {
	bySeam := map[Seam][]rated{}
	for _, c := range mix {
		bySeam[allClasses[c.Class].seam] = append(bySeam[allClasses[c.Class].seam], c)
	}
	return func(op Op) Strike {
		for _, c := range bySeam[op.Seam] {
			if name := allClasses[c.Class].name; name != "" && name != op.Name {
				continue
			}
			dice := scatterBits(scatterBits(seed+uint64(c.Class)<<32) ^ hashName(op.Name) ^ uint64(op.N))
			if float64(dice>>11)/(1<<53) < c.Rate {
				hits[c.Class]++
				return allClasses[c.Class].strike(rand.New(rand.NewPCG(dice, seed)))
			}
		}
		return Strike{}
	}
}

// scatterBits maps numbers to numbers that look drawn.
func scatterBits(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// hashName gives each name of an operation a number of its own.
func hashName(name string) (h uint64) {
	for i := range len(name) {
		h = h*1099511628211 + uint64(name[i])
	}
	return h << 24
}
