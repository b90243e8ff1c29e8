"""Numbers printed in the paper, and by Talvitie, Eggeling & Koivisto (2018): to compare with, never given as ours."""

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

# Table 6, whose rows are those of Tables 3, 4 and 5 on one scale.
TABLE_6 = {
    "S": (278, 412, 464, 443, 534, 548, 548),
    "U": (255, 0, 256, 241, 869, 976, 1136),
    "C": (336, 515, 670, 643, 889, 1064, 1126),
}

# Structural Hamming distance to ALARM by number of cases, read off a plot.
RECOVERY_CASES = (100, 400, 1_600, 6_400, 25_600)
RECOVERY = {
    "optimal DAG, tree CPDs": (33, 13.3, 5.2, 3.0, 3.3),
    "optimal DAG, tree CPDs, parent prior": (30, 7.0, 2.6, 1.2, 3.2),
    "optimal DAG, full tables": (46.5, 26.2, 14.4, 7.8, 7.1),
    "optimal DAG, full tables, parent prior": (24, 8.8, 4.0, 1.7, 5.2),
}
