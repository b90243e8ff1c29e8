"""Results printed in the paper and elsewhere in the literature, for comparison only."""

OPERATORS = ("C", "B", "CB", "CM", "BM", "CBM")
COLUMNS = ("COMP", *OPERATORS)

# Tables 1 and 2: log scores relative to the first column. The paper labels its last row U-PN 40 a second time.
TABLE_1 = {
    "uniform": (0, 13.62, 6.07, 22.13, 26.11, 26.11),
    "bdeu:10": (0, 6.12, 4.21, 9.5, 10.82, 12.93),
    "bdeu:20": (0, 5.09, 3.34, 14.11, 12.11, 14.12),
    "bdeu:30": (0, 4.62, 2.97, 10.93, 12.98, 16.65),
    "bdeu:40": (0, 3.14, 1.27, 16.3, 13.54, 16.02),
    "bdeu:50": (0, 2.99, 1.12, 15.76, 15.54, 17.54),
}
TABLE_2 = {"uniform": (0, 383, 363, 464, 655, 687)}

# Table 6, with the rows of Tables 3, 4 and 5 on one scale.
TABLE_6 = {
    "S": (278, 412, 464, 443, 534, 548, 548),
    "U": (255, 0, 256, 241, 869, 976, 1136),
    "C": (336, 515, 670, 643, 889, 1064, 1126),
}

# Structural Hamming distance to ALARM by number of cases, read off a plot of Talvitie, Eggeling & Koivisto (2018).
RECOVERY_CASES = (100, 400, 1_600, 6_400, 25_600)
RECOVERY = {
    "optimal DAG, tree CPDs": (33, 13.3, 5.2, 3.0, 3.3),
    "optimal DAG, tree CPDs, parent prior": (30, 7.0, 2.6, 1.2, 3.2),
    "optimal DAG, full tables": (46.5, 26.2, 14.4, 7.8, 7.1),
    "optimal DAG, full tables, parent prior": (24, 8.8, 4.0, 1.7, 5.2),
}

# Mean log-likelihood of the test cases of fourteen binary data sets, in nats.
DENSITY_SOURCES = {
    "WinMine": "Rooshenas & Lowd, ICML 2014, Table 1: decision trees by the paper's authors, penalty chosen on valid",
    "ACMN": "Rooshenas & Lowd, ICML 2014, Table 1",
    "MT": "Rooshenas & Lowd, ICML 2014, Table 1: mixtures of trees",
    "ID-SPN": "Rooshenas & Lowd, ICML 2014, Table 1",
    "Single": "best of LearnPSDD, Strudel, selSPN, searchSPN, XPC, CNet, CNet-BD, EM-CNet-BD as printed by Dang et al. "
    "2020, Di Mauro et al. 2021, Yang et al. 2023",
    "Ensemble": "best of EXPC, XCNet40, ECNet, boosted CNet, PSDD-BEM, Strudel-BEM, LearnRP, RAT-SPN, EiNet, PGC, "
    "CM-CLT, FORDE (Di Mauro et al. 2021, Dang et al. 2020, Geh 2021, Peharz et al. 2019, Watson et al. 2023)",
    "Neural": "better of MADE and VAE (Peharz et al. 2019; the VAE figure is a bound)",
}
DENSITY = {
    "nltcs": (-6.02, -6.00, -6.01, -6.02, -6.03, -5.99, -5.99),
    "msnbc": (-6.04, -6.04, -6.07, -6.04, -6.04, -6.04, -6.06),
    "kdd": (-2.16, -2.17, -2.13, -2.13, -2.16, -2.11, -2.12),
    "plants": (-12.65, -12.80, -12.95, -12.54, -12.90, -11.99, -12.32),
    "baudio": (-40.50, -40.32, -40.08, -39.79, -39.94, -39.02, -38.67),
    "jester": (-53.85, -53.31, -53.08, -52.86, -52.92, -51.29, -51.54),
    "bnetflix": (-57.03, -57.22, -56.74, -56.36, -56.60, -55.31, -54.73),
    "tretail": (-10.87, -10.88, -10.83, -10.85, -10.88, -10.72, -10.81),
    "dna": (-80.65, -80.03, -85.14, -81.21, -80.44, -80.82, -82.77),
    "kosarek": (-10.83, -10.84, -10.62, -10.60, -10.70, -10.52, -10.64),
    "msweb": (-9.70, -9.77, -9.85, -9.73, -9.93, -9.62, -9.59),
    "tmovie": (-54.37, -55.80, -54.60, -51.51, -53.28, -49.23, -47.43),
    "cwebkb": (-157.43, -159.13, -156.86, -151.84, -157.05, -147.77, -146.90),
    "ad": (-18.35, -16.53, -16.02, -19.00, -14.92, -13.45, -13.65),
}
