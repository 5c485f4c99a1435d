// What a drafter's confidences are worth: the realised acceptance, by place in the draft and by
// confidence.
//
// A draft's confidence c_i estimates P(token i is accepted | all before it were), but is trained
// for one temperature and one kind of text (DSpark paper; model/drafter.hpp). Here the estimate is
// a prior that observations replace: of a place, confidences fall into bins of equal width, and
//     p = (weight * c + accepted) / (weight + seen)
// over the bin's counts, halved whenever they reach a bound, so that old texts fade. The paper fits
// one temperature to each place instead; that cannot tell that a confident drafter is always wrong.
// Which tokens were verified depends on the confidences alone, so within a bin nothing is selected.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace cedar::session {

/// Of a token whose drafter does not say.
inline constexpr float unknown_confidence = -1;

class draft_calibration {
 public:
  /// P(the token at `place` is accepted | all before it were). `confidence` 0..1; anything else
  /// is unknown.
  double probability(std::size_t place, float confidence) const;

  /// A token whose predecessors were accepted was, or was not.
  void observe(std::size_t place, float confidence, bool accepted);

 private:
  static constexpr std::size_t bins = 8;
  struct counts {
    double accepted = 0;
    double seen = 0;
  };

  std::vector<std::array<counts, bins>> places_;
};

}  // namespace cedar::session
