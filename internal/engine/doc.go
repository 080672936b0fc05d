// Package engine decides when work begins: what is due, in which order, how much
// of it at once, and what waits because something that it needs fails. It knows
// neither services nor files. A [Step] is one kind of work, a [Lane] the work of
// one step in one queue, a [Task] some jobs that are done together, and a target
// what a job needs and what can fail by itself.
//
// One goroutine, the dispatcher, looks at the lanes that were woken or that have
// something due. It alone takes jobs, so that none is under way twice. A task is
// one function that reads from top to bottom: commit the intent, wait for a slot
// ([Task.Begin]), act, give the slot back ([Task.Leave]), commit the outcome.
//
// Tasks that fail, hang or pile up in one lane cost the others nothing: each lane
// may always have one task done. A fault of the environment opens the circuit
// breaker of its target ([Breakers]), and an overload lets fewer calls go at once
// ([Limiters]).
//
// All of it is in memory. After a crash the next start asks what is due, and
// closed breakers find out again what works.
package engine
