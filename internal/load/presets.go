package load

import (
	"slices"
	"time"
)

const warm = 3 * time.Second

// Presets lists all presets, in the order in which a suite runs them.
func Presets() []Preset {
	return slices.Concat(classics(), capacities(), others(), adversities(), burdens())
}

// company is a population that is larger than what keeps warm by itself.
func company() Population { return Population{People: 500, Agents: 5000, Tokens: 1000} }

// handful is one agent for each of 64 connections.
func handful(tokens int) Population { return Population{People: 16, Agents: 64, Tokens: tokens} }

// classics are the five load tests that a forerunner published, and its promise: half a million agents.
func classics() []Preset {
	return []Preset{
		{
			Name: "t1", Purpose: "2,500 machines that pause 100 ms on average between two ordinary certificates: more than the machine can do.",
			Expectation: "The processor is the limit, nobody is refused with an error, nothing is lost.",
			scenario:    Regular, population: Population{People: 100, Tokens: 2500},
			phases: []Phase{{Mode: Paced, Connections: 2500, Interval: 100 * time.Millisecond, For: 15 * time.Second, Warmup: warm}}, judge: onlyLosses,
		},
		{
			Name: "t2", Purpose: "2,500 agents that pause 100 ms on average between two agent certificates, each for a delegation authorization of its own.",
			Expectation: "As t1; two verifications and one signature a certificate are the limit.",
			scenario:    Agent, population: Population{People: 250, Agents: 2500, Tokens: 2500},
			phases: []Phase{{Mode: Paced, Connections: 2500, Interval: 100 * time.Millisecond, For: 15 * time.Second, Warmup: warm}}, judge: onlyLosses,
		},
		{
			Name: "t3", Purpose: "A company at work: 5,000 agents, each with a new certificate every six seconds, 833 a second.",
			Expectation: "Far below capacity: every answer within a few milliseconds of the moment at which the agent wanted it.",
			scenario:    Agent, population: company(),
			phases: []Phase{{Mode: Steady, Connections: 256, Interval: 6 * time.Second, For: 2 * time.Minute, Warmup: warm}}, judge: steadily,
		},
		{
			Name: "t4", Purpose: "3,000 agents of 5,000 people, each asking again as soon as it has its answer.",
			Expectation: "Throughput stays what it is with few clients; waiting grows with their number.",
			scenario:    Agent, population: Population{People: 5000, Agents: 3000, Tokens: 5000},
			phases: []Phase{{Mode: Closed, Connections: 3000, For: 30 * time.Second, Warmup: 5 * time.Second}}, judge: onlyLosses,
		},
		{
			Name: "t5", Purpose: "5,000 agents, each asking again as soon as it has its answer.",
			Expectation: "As t4.",
			scenario:    Agent, population: Population{People: 5000, Agents: 5000, Tokens: 5000},
			phases: []Phase{{Mode: Closed, Connections: 5000, For: 30 * time.Second, Warmup: 5 * time.Second}}, judge: onlyLosses,
		},
		{
			Name: "day", Purpose: "A piece of a company's day: 500,000 agents of 50,000 people, each renewing every ten minutes.",
			Expectation: "833 certificates a second for as long as it runs, flat memory, disk that grows with the certificates alone.",
			scenario:    Agent, population: Population{People: 50_000, Agents: 500_000, Tokens: 50_000},
			phases: []Phase{{Mode: Steady, Connections: 256, Interval: 10 * time.Minute, For: 10 * time.Minute, Warmup: warm}},
			judge:  func(r Report) []Criterion { return append(steadily(r), r.growth()...) },
		},
		{
			Name: "wakeup", Purpose: "500,000 agents that all need a certificate at the same moment and come again when they are told to.",
			Expectation: "All are served in the time that the capacity allows; the server's memory stays bounded; nobody's authorization is used up by a refusal.",
			scenario:    Agent, population: Population{People: 5000, Agents: 500_000, Tokens: 5000},
			phases: []Phase{
				{Name: "capacity", Mode: Closed, Connections: 64, For: 15 * time.Second, Warmup: warm},
				{Name: "wake-up", Main: true, Mode: Once, Connections: 1000, For: 30 * time.Minute, Obey: true},
			},
			judge: wokenUp,
		},
	}
}

// capacities measure how much, and how fast at which load.
func capacities() []Preset {
	steps := func(rates ...float64) []Phase {
		var all []Phase
		for i, rate := range rates {
			p := Phase{Name: thousands(rate) + "/s", Mode: Open, Connections: 256, Rate: rate, For: 30 * time.Second}
			if i == 0 {
				p.Warmup = warm
			}
			all = append(all, p)
		}
		return all
	}
	return []Preset{
		{
			Name: "steady", Purpose: "833 agent certificates a second, arriving independently of one another, for ten minutes.",
			Expectation: "No queue forms: latency is that of the work and one sync.",
			scenario:    Agent, population: company(),
			phases: []Phase{{Mode: Open, Connections: 256, Rate: 833, For: 10 * time.Minute, Warmup: warm}},
			judge: func(r Report) []Criterion {
				return append(append(steadily(r), busy(r.first(), 0.35)), r.resident(250)...)
			},
		},
		{
			Name: "steps", Purpose: "833, 1,700, 2,500 and 4,167 arrivals a second, half a minute each.",
			Expectation: "Latency is flat until the machine's capacity is near; beyond it the server refuses and goes on serving what it can.",
			scenario:    Agent, population: company(), phases: steps(833, 1700, 2500, 4167),
			judge: onlyLosses,
		},
		{
			Name: "capacity", Purpose: "Capacity in a closed loop, then arrivals at 50, 70 and 90 % of it, then five times as many for ten seconds, then 50 % again.",
			Expectation: "Short queues up to 70 %; in the burst the server refuses what it cannot do; afterwards it is soon as before.",
			scenario:    Agent, population: company(),
			phases: []Phase{
				{Name: "capacity", Mode: Closed, Connections: 64, For: 20 * time.Second, Warmup: warm},
				{Name: "50 %", Mode: Open, Connections: 512, Share: 0.5, For: 30 * time.Second, Warmup: warm},
				{Name: "70 %", Main: true, Mode: Open, Connections: 512, Share: 0.7, For: 30 * time.Second},
				{Name: "90 %", Mode: Open, Connections: 512, Share: 0.9, For: 30 * time.Second},
				{Name: "burst", Mode: Open, Connections: 8192, Share: 5, For: 10 * time.Second, Leave: true},
				{Name: "after", Mode: Open, Connections: 8192, Share: 0.5, For: 30 * time.Second},
			},
			judge: func(r Report) []Criterion { return append(moderate(r, 2), r.refusing(4, 1), r.calmAfter(4, 1)) },
		},
		{
			Name: "connections", Purpose: "The same closed loop with 64, 500, 2,500 and 5,000 connections.",
			Expectation: "The rate does not depend on the number of connections; each costs some memory.",
			scenario:    Agent, population: company(),
			phases: []Phase{
				{Name: "64", Connections: 64, For: 20 * time.Second, Warmup: warm}, {Name: "500", Connections: 500, For: 20 * time.Second, Warmup: 5 * time.Second},
				{Name: "2,500", Connections: 2500, For: 20 * time.Second, Warmup: 10 * time.Second}, {Name: "5,000", Connections: 5000, For: 20 * time.Second, Warmup: 15 * time.Second},
				{Name: "64 again", Connections: 64, For: 20 * time.Second, Warmup: warm},
			},
			judge: manyConnections,
		},
	}
}

// others measure what else is asked for.
func others() []Preset {
	return []Preset{
		{
			Name: "renew", Purpose: "Agents that renew over mTLS under a standing approval, on kept connections: the keyring signs for the person.",
			Expectation: "Two signatures, no verification: faster than certificates for a person's own signature.",
			scenario:    Renew, population: handful(16), phases: []Phase{{Connections: 64, For: 30 * time.Second, Warmup: warm}},
			judge: func(r Report) []Criterion {
				return []Criterion{r.first().atLeast("renewals", 5000)}
			},
		},
		{
			Name: "renew-regular", Purpose: "Machines that renew their ordinary certificates over mTLS with the same key, on kept connections.",
			Expectation: "One signature; the handshake has proved the key.",
			scenario:    RenewRegular, population: handful(16), phases: []Phase{{Connections: 64, For: 30 * time.Second, Warmup: warm}},
			judge: onlyLosses,
		},
		{
			Name: "ocsp", Purpose: "The status of 1,000 certificates, asked for again and again.",
			Expectation: "Answers come from the cache; what is left is HTTP.",
			scenario:    OCSP, population: handful(64), phases: []Phase{{Connections: 64, For: 30 * time.Second, Warmup: warm}},
			judge: func(r Report) []Criterion {
				return []Criterion{r.first().atLeast("answers", 30_000)}
			},
		},
		{
			Name: "crl", Purpose: "The agents' CRL with 100,000 entries, fetched while one more certificate is revoked each second.",
			Expectation: "The list is made anew from what is known already, within 50 ms.",
			scenario:    CRL, population: handful(64), phases: []Phase{{Connections: 4, For: 30 * time.Second, Warmup: warm}},
			judge: onlyLosses,
		},
		{
			Name: "verify", Purpose: "Agent certificates verified offline with the public package, by the client's own process.",
			Expectation: "Little more than the two signatures that are new each time.",
			scenario:    Verify, population: handful(64), phases: []Phase{{Connections: 2, For: 10 * time.Second, Warmup: time.Second}},
			judge: func(r Report) []Criterion { return []Criterion{r.worth(verificationsName, 2.2)} },
		},
	}
}

// adversities ask for too much, or make the database slow.
func adversities() []Preset {
	return []Preset{
		{
			Name: "admission", Purpose: "The server is told to admit 1,000 a second in 256 MB; 5,000 a second are offered for half a minute, then 500 again.",
			Expectation: "What is refused is refused at once and says when to come again; what was admitted is answered; then all is as before.",
			scenario:    Agent, population: company(), settings: []string{"limit.rate=1000", "limit.process=256MB"},
			phases: []Phase{
				{Name: "normal", Mode: Open, Connections: 8192, Rate: 500, For: 20 * time.Second, Warmup: warm}, {Name: "flood", Main: true, Mode: Open, Connections: 8192, Rate: 5000, For: 30 * time.Second},
				{Name: "normal again", Mode: Open, Connections: 8192, Rate: 500, For: 30 * time.Second},
			},
			judge: admitted,
		},
		{
			Name: "stall", Purpose: "Half the capacity; then the database, or the disk below SQLite, stands still for ten seconds.",
			Expectation: "The server refuses within its wait, keeps what it acknowledged, and is as before soon after.",
			scenario:    Agent, population: company(),
			phases: []Phase{
				{Name: "capacity", Mode: Closed, Connections: 64, For: 15 * time.Second, Warmup: warm}, {Name: "before", Mode: Open, Connections: 2048, Share: 0.5, For: 15 * time.Second, Warmup: warm},
				{Name: "stall", Main: true, Mode: Open, Connections: 2048, Share: 0.5, For: 30 * time.Second, Stall: 10 * time.Second}, {Name: "after", Mode: Open, Connections: 2048, Share: 0.5, For: 20 * time.Second},
			},
			judge: func(r Report) []Criterion { return []Criterion{r.calmAfterStall(2)} },
		},
		{
			Name: "slow-disk", Purpose: "The same closed loop with 5, 20 and 50 ms added to each sync of the server.",
			Expectation: "Commits grow larger, not fewer certificates; each waits for two syncs at most.",
			scenario:    Agent, population: company(),
			phases: []Phase{
				{Name: "none", Connections: 512, For: 20 * time.Second, Warmup: warm}, {Name: "5 ms", Connections: 512, For: 20 * time.Second, Warmup: warm, Slow: 5 * time.Millisecond},
				{Name: "20 ms", Connections: 512, For: 20 * time.Second, Warmup: warm, Slow: 20 * time.Millisecond}, {Name: "50 ms", Main: true, Connections: 512, For: 20 * time.Second, Warmup: warm, Slow: 50 * time.Millisecond},
				{Name: "none again", Connections: 512, For: 20 * time.Second, Warmup: warm},
			},
			judge: slowly,
		},
	}
}

// burdens make the machine small, or its work larger.
func burdens() []Preset {
	return []Preset{
		{
			Name: "small", Purpose: "One core and 512 MB with the device profile low_mem; 833 agent certificates a second.",
			Expectation: "It serves them, or the share that one core can do, and is never killed for memory.",
			scenario:    Agent, population: company(), settings: []string{"device=low_mem"}, cores: 1, memory: 512 << 20,
			phases: []Phase{{Name: "capacity", Connections: 64, For: 20 * time.Second, Warmup: warm}, {Name: "833/s", Main: true, Mode: Open, Connections: 256, Rate: 833, For: 2 * time.Minute, Warmup: warm}},
			judge:  small,
		},
		{
			Name: "new-connections", Purpose: "833 renewals a second, each on a new mTLS connection, as half a million agents do: without, then with resumption.",
			Expectation: "The handshake is the larger part of the work; no queue forms.",
			scenario:    Renew, population: Population{People: 100, Agents: 5000, Tokens: 100},
			phases: []Phase{
				{Name: "full handshakes", Mode: Open, Connections: 256, Rate: 833, For: 30 * time.Second, Warmup: warm, Fresh: true},
				{Name: "resumed", Mode: Open, Connections: 256, Rate: 833, For: 30 * time.Second, Warmup: 8 * time.Second, Fresh: true, Resume: true},
			},
			judge: func(r Report) []Criterion {
				var all []Criterion
				for _, p := range r.Phases {
					all = append(all, p.atMost(99, 20).of(p.Name), noError(p))
				}
				return all
			},
		},
		{
			Name: "log", Purpose: "SQLite at full load for ten minutes, with a backup that reads one snapshot all the time.",
			Expectation: "The write-ahead log stays small.",
			scenario:    Agent, population: handful(64), phases: []Phase{{Connections: 64, For: 10 * time.Minute, Warmup: warm, Reader: true}},
			judge: func(r Report) []Criterion {
				return []Criterion{atMostMB("the write-ahead log", r.highest(func(s Second) float64 { return float64(s.Log) }), 64)}
			},
		},
		{
			Name: "changes", Purpose: "Half the capacity, quiet, and then with 100 tokens and people changed a second.",
			Expectation: "Changes of rare state leave issuing as it was.",
			scenario:    Agent, population: company(),
			phases: []Phase{
				{Name: "capacity", Connections: 64, For: 15 * time.Second, Warmup: warm}, {Name: "quiet", Mode: Open, Connections: 256, Share: 0.5, For: 30 * time.Second, Warmup: warm},
				{Name: "changing", Main: true, Mode: Open, Connections: 256, Share: 0.5, For: 30 * time.Second, Changes: 100}, {Name: "quiet again", Mode: Open, Connections: 256, Share: 0.5, For: 30 * time.Second},
			},
			judge: unmoved,
		},
	}
}

// onlyLosses judges nothing beyond what every run is judged by: that nothing is lost.
func onlyLosses(Report) []Criterion { return nil }
