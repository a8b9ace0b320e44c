/* Counted numbers on granted ranges of one cell with compare-and-swap, with unknown
 * outcomes: the protocol of package sequence in segmented mode. README.md says what is
 * modelled and what is not.
 *
 * Numbers are 1..NUMBERS. A run has no bound in length: any number of grants,
 * give-backs, crashes and restarts. What makes that finite:
 *
 * - The version of the cell never comes twice, so a write that is conditional on an
 *   earlier version can never be carried out. Only writes that are conditional on the
 *   present version are in flight here, and a new version removes them all (renew).
 * - A process may repeat a write with another step, and it reads the step back. So a
 *   process has sent or has not sent, and the store picks the step.
 * - The name of a write serves only for its writer to know it again. So the cell says
 *   which living process would know the last write for its own, or NOBODY.
 * - Instead of noting every number issued, we note one, the witness, which is picked
 *   at the start in every possible way.
 *
 * Each process may at any time do any of the steps below. The real one does them in
 * a certain order, so all that it can do, the model can, and more.
 */

#ifndef PROCS
#define PROCS 3   /* processes at any one time; the dead are replaced at once */
#endif
#ifndef NUMBERS
#define NUMBERS 7 /* at most 14 */
#endif
#ifndef STEP
#define STEP 2    /* a grant has 1 to STEP numbers */
#endif

#if defined(S6) || defined(S6_WRITES) || defined(S6_SAME) || defined(S6_MOST) || \
	defined(S6_FROM) || defined(S6_REVOKE) || defined(S6_MARK) || \
	defined(S6_AGAIN) || defined(S6_SET)
#define BACK      /* the store goes back once, see there */
#endif
#if defined(S1_REFRESH) || defined(S1_SUCCESS) || defined(S1_VALUE) || defined(SWAP)
#define REMEMBER  /* a process remembers the range that it has sent */
#endif
#if defined(REMEMBER) || defined(BACK) || defined(S1_TOKEN) || defined(S2_EARLY) || \
	defined(S2_UNSEAL) || defined(S3_VERSION) || defined(S3_NEXT) || defined(S3_AGAIN) || \
	defined(S3_BOTH) || defined(S4) || defined(SET)
#define NO_OWNER  /* of mutants we want to see a number issued twice */
#endif

#define NOBODY 0  /* processes are 1..PROCS */
#define END (NUMBERS + 1)

#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define MIN(a, b) ((a) < (b) -> (a) : (b))

/* ---- The cell ---- */

byte next = 1; /* the next grant begins here */
byte from;     /* where the last write began: next as it was before a grant, else as it is */
byte record;   /* the process that would know the last write for its own */
byte late;     /* a give-back of a process that has ended since, in flight: to here; or 0 */

#ifdef BACK
#ifndef WRITES
#define WRITES 5
#endif
byte writes;   /* the count of writes; WRITES bounds it, at most 7 */
byte most = 1; /* the highest next ever */
bool lost;     /* the mark: the store has lost writes, and nothing is granted */
byte marks;    /* the count of marks */
#define can_write (writes < WRITES)
#else
#define can_write true
#endif

/* ---- The processes ---- */

typedef Process {
	byte used, to; /* the current segment is [used, to), */
	byte pf, pt;   /* the prefetched segment [pf, pt); 0, 0 if there is none */
	bool sealed;   /* issues no more; [used, to) is the tail to be given back */
	bool sent;     /* a grant is in flight, once or more */
	bool gave      /* a give-back is in flight */
#ifdef REMEMBER
	; byte wf, wt  /* the range that it has sent */
#endif
#ifdef BACK
	; byte writes, most, marks /* of the cell as it read or wrote it last, */
	; bool gone    /* and the store has lost that write */
	; byte top     /* the end of its last grant */
	; bool proof   /* it has found that the store went back, and is to mark the cell */
	; bool knows   /* for the check: it has read a cell that shows so */
#endif
};

Process p[PROCS + 1]; /* p[0] is not used */

#ifdef GAP
#define adjoin(x) false
#else
#define adjoin(x) (p[x].pf == p[x].to)
#endif
/* It would find that its write has landed. */
#ifdef S1_TOKEN
#define found false
#else
#define found (record == _pid)
#endif
#ifdef BACK /* without prefetch */
#define may_ask (my.to == 0)
#else
#define may_ask (my.pt == 0)
#endif
#define has(x, n) ((p[x].used <= n && n < p[x].to) || (p[x].pf <= n && n < p[x].pt))

#define my p[_pid]

#ifdef BACK
#ifdef S6_MARK
#define may_go_on !my.proof
#else
#define may_go_on (!my.proof && !lost)
#endif

/* What it read or wrote last was written by nobody since. */
#define unchanged (writes == my.writes && !my.gone)

#define went_back (false \
	FEWER_WRITES \
	OTHER_WRITE \
	LESS \
	BELOW)

#if defined(S6) || defined(S6_WRITES)
#define FEWER_WRITES
#else
#define FEWER_WRITES || writes < my.writes
#endif
#if defined(S6) || defined(S6_SAME)
#define OTHER_WRITE
#else
#define OTHER_WRITE || (writes == my.writes && my.gone)
#endif
#if defined(S6) || defined(S6_MOST)
#define LESS
#else
#define LESS || most < my.most
#endif
#if defined(S6) || defined(S6_FROM)
#define BELOW
#else
#define BELOW || (from < my.top && record != _pid && !unchanged)
#endif
#else
#define may_go_on true
#endif

/* ---- What is checked ---- */

byte witness; /* this number */
bool issued;  /* was issued */

#ifdef BACK
byte back;     /* 1: a copy of the cell was taken; 2: and the store was restored from it */
byte cnext, cfrom, cwrites, cmost; /* the copy */
byte peak = 1; /* the highest next in both histories */
byte safe;     /* an operator has raised next to here after the mark; or 0 */
bool returned; /* some tail was given back at some time */
#endif

inline issue(n) {
#ifdef BACK
	/* No protocol can keep a number from being issued twice by processes that cannot know
	 * of the other history. */
	assert(!my.knows)
#else
	if
	:: n == witness -> assert(!issued); issued = true
	:: else
	fi
#endif
}

/* A grant of [a, b) to x. */
inline check_grant(x, a, b) {
#ifdef BACK
	assert(!lost);
	assert(!p[x].knows);
	assert(safe <= a);
	assert(p[x].top <= a); /* a process never issues a number twice itself */
#else
	skip
#endif
}

/* At most one of these: the number was issued; it is to be granted; a living process
 * holds it; a process would find it granted to it. So a number that was given back
 * was not issued, and the cell is above every number that was. */
inline check_owner() {
	d_step {
#ifndef NO_OWNER
		h = issued + (next <= witness) + (record != NOBODY && from <= witness && witness < next);
		for (i : 1 .. PROCS) { h = h + has(i, witness) }
		assert(h <= 1);
#endif
		i = 0; h = 0
	}
}

/* A process ends that has lost nothing: every number below next was issued. */
inline check_gap() {
#ifdef CLEAN
	assert(issued || next <= witness)
#else
	skip
#endif
}

/* ---- Housekeeping: one state for all that are alike ---- */

inline swap(a, b) { h = a; a = b; b = h }

#ifdef BACK
#define PLACE(x) ((((((((((((p[x].used * 16 + p[x].to) * 16 + p[x].top) * 16 + p[x].most) * 8 + \
	p[x].writes) * 4 + p[x].marks) * 2 + p[x].gone) * 2 + p[x].proof) * 2 + p[x].knows) * 2 + \
	p[x].sealed) * 2 + p[x].sent) * 2 + p[x].gave) * 2 + (record == x))
#else
#define PLACE(x) (((((((p[x].used * 16 + p[x].to) * 16 + p[x].pf) * 16 + p[x].pt) * 2 + \
	p[x].sealed) * 2 + p[x].sent) * 2 + p[x].gave) * 2 + (record == x))
#endif

/* Ends every step. A process that has used its segment up enters the prefetched one.
 * Who is called 1 and who 2 does not matter, so we keep them sorted. (PLAIN: we do not.) */
inline tidy() {
	check_owner();
	d_step {
		for (i : 1 .. PROCS) {
			if
			:: p[i].used == p[i].to ->
				p[i].used = p[i].pf; p[i].to = p[i].pt;
				p[i].pf = 0; p[i].pt = 0
			:: else
			fi
		}
#ifndef PLAIN
		for (i : 1 .. PROCS) {
			for (j : 1 .. PROCS - 1) {
				if
				:: PLACE(j) < PLACE(j+1) ->
					swap(p[j].used, p[j+1].used);
					swap(p[j].to, p[j+1].to);
					swap(p[j].pf, p[j+1].pf);
					swap(p[j].pt, p[j+1].pt);
					swap(p[j].sealed, p[j+1].sealed);
					swap(p[j].sent, p[j+1].sent);
					swap(p[j].gave, p[j+1].gave);
#ifdef REMEMBER
					swap(p[j].wf, p[j+1].wf);
					swap(p[j].wt, p[j+1].wt);
#endif
#ifdef BACK
					swap(p[j].writes, p[j+1].writes);
					swap(p[j].most, p[j+1].most);
					swap(p[j].marks, p[j+1].marks);
					swap(p[j].gone, p[j+1].gone);
					swap(p[j].top, p[j+1].top);
					swap(p[j].proof, p[j+1].proof);
					swap(p[j].knows, p[j+1].knows);
#endif
					if
					:: record == j -> record = j + 1
					:: record == j + 1 -> record = j
					:: else
					fi
				:: else
				fi
			}
		}
#endif
		i = 0; j = 0; h = 0
	}
}

inline drop(x) { p[x].used = 0; p[x].to = 0; p[x].pf = 0; p[x].pt = 0 }

/* The process knows no write for its own any more. */
inline disown(x) {
	if
	:: record == x ->
		record = NOBODY;
#ifndef BACK
		from = 0
#endif
	:: else
	fi
}

inline restart(x) {
	d_step {
		drop(x);
		p[x].sealed = false; p[x].sent = false; p[x].gave = false;
#ifdef REMEMBER
		p[x].wf = 0; p[x].wt = 0;
#endif
#ifdef BACK
		p[x].writes = 0; p[x].most = 0; p[x].marks = 0; p[x].gone = false; p[x].top = 0;
		p[x].proof = false; p[x].knows = false;
#endif
		disown(x)
	}
}

/* The process takes over the segment [a, b). */
inline adopt(x, a, b) {
	d_step {
		if
		:: p[x].to == 0 -> p[x].used = a; p[x].to = b
		:: p[x].to != 0 && p[x].sealed && p[x].to == a -> p[x].to = b /* the tail grows */
		:: p[x].to != 0 && p[x].sealed && p[x].to != a -> p[x].used = a; p[x].to = b
		:: p[x].to != 0 && !p[x].sealed -> p[x].pf = a; p[x].pt = b
		fi
#ifdef BACK
		; p[x].top = b
#endif
	}
}

/* ---- The network and the store ---- */

/* A give-back to n. */
inline lower(n) {
#ifdef BACK
	returned = true;
#endif
	next = n
}

/* A write was carried out that began at a, and who knows it for its own. So the cell has
 * a new version, and no other write in flight can be carried out. Their writers find that
 * out by reading, and give up. That they do so at once and not some time later only lets
 * them do more. */
inline renew(a, who) {
	d_step {
		for (i : 1 .. PROCS) {
#ifndef SWAP
			p[i].sent = false;
#endif
			if
			:: p[i].gave ->
#ifdef S3_VERSION
				late = p[i].used;
#endif
#ifdef S3_AGAIN
				p[i].gave = false
#else
				restart(i)
#endif
			:: else
			fi
		}
#ifndef S3_VERSION
		late = 0;
#endif
		record = who;
#ifdef BACK
		from = a;
		writes++; most = MAX(most, next); peak = MAX(peak, next);
#else
		from = (who -> a : 0);
#endif
		i = 0
	}
}

proctype Network() {
	byte n, i, j, h;
end:
	do :: atomic { if
#if !defined(CLEAN) && !defined(BACK)
	/* A grant is carried out, of somebody who has crashed or given up since, or of a
	 * process beyond the PROCS that never issues. Or an operator raises next. */
	:: next < END ->
		h = next;
		select(n : next + 1 .. END);
		next = n;
		renew(h, NOBODY);
		n = 0
#endif
	/* A give-back is carried out, of somebody who has crashed since. */
	:: can_write && late -> lower(late); late = 0; renew(next, NOBODY)
#ifdef SET
	/* An operator lowers next. */
	:: next > 1 -> next--; renew(next, NOBODY)
#endif
#ifdef BACK
	:: back == 0 -> back = 1; cnext = next; cfrom = from; cwrites = writes; cmost = most
	/* The store is restored from the copy. The writes in flight are conditional on
	 * versions that do not come again. */
	:: back == 1 ->
		back = 2;
		next = cnext; from = cfrom; writes = cwrites - 1; most = cmost;
		for (i : 1 .. PROCS) { p[i].gone = p[i].gone || p[i].writes > cwrites }
		n = from;
		renew(n, NOBODY);
		n = 0; cnext = 0; cfrom = 0; cwrites = 0; cmost = 0
	/* An operator raises next above all numbers in use. */
	:: can_write && lost ->
		next = peak; lost = false; safe = next;
		renew(next, NOBODY);
		for (i : 1 .. PROCS) { p[i].knows = false }
#endif
	fi; tidy() } od
}

/* ---- A process ---- */

#ifdef REMEMBER
#define forget() my.wf = 0; my.wt = 0
#else
#define forget() skip
#endif

/* The process reads the cell. */
inline look() {
#ifdef BACK
	d_step {
		my.knows = my.knows || (my.gone && writes <= my.writes && marks == my.marks);
		if
		:: went_back ->
			assert(back == 2);
			my.proof = true;
#ifndef S6_REVOKE
			drop(_pid)
#endif
		:: else ->
			if
			:: lost -> drop(_pid)
			:: else ->
#ifndef S6_SET
				/* A mark that it has not read was there, and next was raised since. */
				if
				:: marks > my.marks -> drop(_pid)
				:: else
				fi;
#endif
				/* It goes on. So it is granted no number of which it knows that it was
				 * granted before, if it was not given back. */
				assert(returned || my.most <= next);
				learn()
			fi
		fi
	}
#else
	skip
#endif
}

inline learn() {
#ifdef BACK
	d_step {
		my.writes = writes; my.most = most; my.marks = marks; my.gone = false
	}
#else
	skip
#endif
}

proctype Node() {
	byte n, i, j, h;
end:
	do :: atomic { if
	/* Issue a number. At any time, even with a write in flight. */
	:: !my.sealed && my.used < my.to -> issue(my.used); my.used++
#if !defined(CLEAN) && !defined(BACK)
	/* A call for several numbers in a row gives the rest of the segment up. */
	:: !my.sealed && my.used < my.to -> my.used = my.to
#endif

	/* Ask for a segment: read the cell, or use the copy of the last write, and write.
	 * If the cell has changed since, nothing comes of it. So this may be one step. Also:
	 * the outcome is unknown, it reads the old version, and tries again. */
	:: !my.sealed && may_ask && !my.sent && !found && next < END ->
		look();
		if
		:: may_go_on ->
			my.sent = true
#ifdef REMEMBER
			; if
			:: my.wt == 0 ->
				select(n : next + 1 .. next + STEP);
				my.wf = next; my.wt = MIN(n, END); n = 0
			:: else
			fi
#endif
		:: else
		fi
	/* That is carried out, however often it was sent. */
	:: can_write && my.sent && next < END ->
#ifdef REMEMBER
		h = my.wf; n = my.wt;
#else
		h = next;
		select(n : next + 1 .. next + STEP);
		n = MIN(n, END);
#endif
		check_grant(_pid, h, n);
		next = n;
		my.gave = false; /* it will find its own name in the cell */
		my.sent = false;
		if
		/* The answer comes. (If it comes late, it is as if the process were late.) */
		:: true ->
			renew(h, NOBODY);
			adopt(_pid, h, n); forget(); learn();
#ifdef S1_TOKEN
			record = _pid; from = h
#endif
#ifndef CLEAN
		/* The answer is lost. */
		:: true ->
			renew(h, _pid);
#ifdef S1_TOKEN
			my.sent = true
#endif
#endif
		fi;
		n = 0; h = 0
	/* The outcome is unknown, and it reads the cell: its own name. */
#ifdef S1_TOKEN
	/* (It looks at the process's name, and takes an earlier write for this one.) */
	:: record == _pid && my.sent && my.pt == 0 -> adopt(_pid, from, next); my.sent = false
#else
	:: record == _pid && my.pt == 0 ->
		look();
		if
		:: may_go_on ->
			adopt(_pid, from, next); forget()
		:: else
		fi;
#ifndef S4 /* (Two threads read the cell, and both put the segment into the window.) */
		disown(_pid)
#endif
#endif
#ifndef CLEAN
	/* It gives up, having read anything or nothing. */
	:: my.sent || record == _pid -> my.sent = false; forget(); disown(_pid)
#endif

#ifdef S1_REFRESH
	/* Takes the unknown outcome for a failure, and sends the same range again with the
	 * version that the cell has now. */
	:: my.wt && !my.sent && my.pt == 0 -> my.sent = true
#endif
#ifdef S1_SUCCESS
	/* Takes the unknown outcome for a success. */
	:: my.wt && my.pt == 0 -> adopt(_pid, my.wf, my.wt); my.sent = false; forget()
#endif
#ifdef S1_VALUE
	/* Reads that next is as it wrote it, and takes that for its own doing. */
	:: my.wt && my.wt == next && my.pt == 0 -> adopt(_pid, my.wf, my.wt); my.sent = false; forget()
#endif

	/* Seal, for good. The tail is the last segment, and the other if they adjoin. */
	:: !my.sealed && (my.to || my.sent || record == _pid) ->
		my.sealed = true;
		if
#ifdef S3_BOTH
		:: my.pt -> my.to = my.pt
#else
		:: my.pt && adjoin(_pid) -> my.to = my.pt
		:: my.pt && !adjoin(_pid) -> my.used = my.pf; my.to = my.pt
#endif
		:: else
		fi;
		my.pf = 0; my.pt = 0
	/* Then give the tail back, once or again, if the cell still ends where it does. */
	:: my.sealed && !my.gave && record != _pid && my.to &&
#ifdef S3_NEXT
		next > my.used ->
#else
		next == my.to ->
#endif
		look();
		if
		:: may_go_on && my.to -> my.gave = true
		:: else
		fi
	/* That is carried out. Whether the answer comes does not matter. */
	:: can_write && my.gave ->
		lower(my.used);
#ifdef S3_AGAIN
		/* (It comes not: it reads the cell, and gives back again if next is its end.) */
		if
		:: true -> restart(_pid)
		:: true
		fi;
#else
		restart(_pid);
#endif
		check_gap();
		renew(next, NOBODY)
#ifdef S2_EARLY
	/* Gives the tail back before it seals. */
	:: !my.sealed && my.to == next -> late = my.used
#endif
#ifdef S2_UNSEAL
	/* The give-back timed out: goes on issuing. */
	:: my.gave -> late = my.used; my.gave = false; my.sealed = false
#endif

#ifdef BACK
	/* Read the cell, at any time. */
	:: record != _pid -> look()
	/* Mark the cell, unless it finds that there is or was a mark as high. The write may meet others, and is
	 * repeated until it lands. */
	:: can_write && my.proof ->
		if
		:: (lost || marks > my.marks) && !went_back
		:: else ->
			most = MAX(most, my.most); next = most; lost = true;
			marks = MAX(marks, my.marks) + 1;
			writes = MAX(writes, my.writes);
			renew(next, NOBODY);
			learn()
		fi;
		my.proof = false
#ifdef S6_AGAIN
	/* The write meets another, and the process decides anew. */
	:: my.proof -> my.proof = false
#endif
#endif

#ifdef CLEAN
	/* There is nothing to give back: end. */
	:: my.sealed && !my.sent && my.to == 0 -> restart(_pid); check_gap()
#else
	/* Crash at any time, or end, and start again with no memory. */
	:: true ->
		if
		:: my.gave -> late = my.used
		:: else
		fi;
		restart(_pid)
#endif
	fi; tidy() } od
}

init {
	byte i;
	atomic {
#ifndef BACK
		select(witness : 1 .. NUMBERS);
#endif
		for (i : 1 .. PROCS) { run Node() }
		i = 0;
		run Network()
	}
}
