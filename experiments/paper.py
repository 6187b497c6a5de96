"""Numbers that the paper prints (Teh, Daumé and Roy 2007), with their standard errors where it gives them."""

from __future__ import annotations

SCORES = ("purity", "subtree", "leave_one_out")

#: Table 1: mean and standard error of each score, over 50 repeats of MNIST and 20 of SPAMBASE.
TABLE1 = {
    ("MNIST", "average link"): ((0.363, 0.004), (0.581, 0.005), (0.755, 0.005)),
    ("MNIST", "BHC"): ((0.392, 0.006), (0.579, 0.005), (0.763, 0.005)),
    ("MNIST", "coalescent"): ((0.412, 0.006), (0.610, 0.005), (0.773, 0.005)),
    ("SPAMBASE", "average link"): ((0.616, 0.007), (0.607, 0.011), (0.846, 0.010)),
    ("SPAMBASE", "BHC"): ((0.711, 0.010), (0.549, 0.015), (0.832, 0.010)),
    ("SPAMBASE", "coalescent"): ((0.689, 0.008), (0.661, 0.012), (0.861, 0.008)),
}

#: Table 2: log likelihood ratio, time, words and authors of nine clusters of NIPS abstracts.
TABLE2 = (
    (32.7, -2.71, "bifurcation attractors hopfield network saddle", "Mjolsness (9) Saad (9) Ruppin (8) Coolen (7)"),
    (0.106, -3.77, "voltage model cells neurons neuron", "Koch (30) Sejnowski (22) Bower (11) Dayan (10)"),
    (83.8, -2.02, "chip circuit voltage vlsi transistor", "Koch (12) Alspector (6) Lazzaro (6) Murray (6)"),
    (140.0, -2.43, "spike ocular cells firing stimulus", "Sejnowski (22) Koch (18) Bower (11) Dayan (10)"),
    (2.48, -3.66, "data model learning algorithm training", "Jordan (17) Hinton (16) Williams (14) Tresp (13)"),
    (31.3, -2.76, "infomax image ica images kurtosis", "Hinton (12) Sejnowski (10) Amari (7) Zemel (7)"),
    (31.6, -2.83, "data training regression learning model", "Jordan (16) Tresp (13) Smola (11) Moody (10)"),
    (39.5, -2.46, "critic policy reinforcement agent controller", "Singh (15) Barto (10) Sutton (8) Sanger (7)"),
    (23.0, -3.03, "network training units hidden input", "Mozer (14) Lippmann (11) Giles (10) Bengio (9)"),
)
