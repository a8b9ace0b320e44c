package spread

import (
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// spread is how a sample of IDs lies over the residues of a number of shards.
type spread struct {
	shares []float64 // of each residue
	chi2   float64   // against the same number for each
	p      float64   // of at least that much by chance, if all residues are alike
}

// spreadOf divides IDs, of which it is given the lowest bytes, over 2 to 256 shards, a
// power of two.
func spreadOf(low []byte, shards int) spread {
	counts, expected := make([]float64, shards), make([]float64, shards)
	for _, b := range low {
		counts[int(b)%shards]++
	}
	s := spread{shares: make([]float64, shards)}
	for i := range counts {
		expected[i] = float64(len(low)) / float64(shards)
		s.shares[i] = counts[i] / float64(max(1, len(low)))
	}
	if len(low) == 0 {
		s.p = 1
		return s
	}
	s.chi2 = stat.ChiSquare(counts, expected)
	s.p = distuv.ChiSquared{K: float64(shards - 1)}.Survival(s.chi2)
	return s
}

// uniform is the probability below which a spread is not taken for chance.
const uniform = 0.01
