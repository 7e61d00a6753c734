"""French."""

from typing import Final

from processors.response_handling.lexicons import Words

WORDS: Final = Words(
    language="fr",
    function="""
    le la les l un une des du de d et ou mais est sont était étaient être a ont avait il elle ils elles on nous
    vous je tu ce cet cette ces son sa ses votre vos notre nos leur leurs mon ma mes qui que qu quoi dont où
    dans sur sous avec sans pour par en au aux à pas ne n plus très bien aussi encore déjà y se s c j si comme
    quand combien quel quelle depuis avant après entre
    tous toutes tout toute chaque ensemble entièrement complet complète complètement
    """,
    others="""
    croissance dim dimanche hausse hausses jeu jeudi lun lundi mar mardi mer mercredi moyen moyens sam
    samedi ven vendredi
    """,
    months="janvier janv|février févr fév|mars|avril avr|mai|juin|juillet juil|août|septembre sept|octobre oct|"
    "novembre nov|décembre déc",
    numbers="""
    zéro=0 deux=2 trois=3 quatre=4 cinq=5 six=6 sept=7 huit=8 neuf=9 dix=10 onze=11 douze=12 treize=13 quatorze=14
    quinze=15 seize=16 vingt=20 trente=30 quarante=40 cinquante=50 soixante=60 douzaine=12 dizaine=10
    """,
    scales="mille=3 milliers=3 million=6 millions=6 milliard=9 milliards=9",
    units="""
    ms: milliseconde millisecondes; s: seconde secondes; min: minute minutes mn; h: heure heures;
    d: jour jours nuit nuits nuitée nuitées j; wk: semaine semaines; mo: mois; y: an ans année années;
    %: pourcent pour_cent; mm: millimètre millimètres; cm: centimètre centimètres; m: mètre mètres;
    km: kilomètre kilomètres; mi: mille milles; g: gramme grammes; kg: kilo kilos kilogramme kilogrammes;
    t: tonne tonnes; l: litre litres; deg: degré degrés; C: celsius; B: octet octets; kB: ko; MB: mo_; GB: go;
    TB: to
    """,
    negation="vide vides pas ne n aucun aucune jamais rien sans ni personne non impossible",
    nothing="""
    vide vides
    n'y_a_pas n’y_a_pas il_n'y il_n’y aucun aucune jamais rien personne
    pas_de pas_d'autre
    """,
    failure="""
    erreur* échec* échou* problème* désolé* panne indisponible interrompu* réessay* excus* n'a_pas
    introuvable* impossible n'ai_pas n’ai_pas n’a_pas ne_répond* hors_service hors_ligne ultérieurement
    sans_réponse pas_pu aucune_réponse pas_accès en_panne
    malheureusement refus* rejet* bloqu* expir* invalide insuffisant* incomplet* partiel* endommagé*
    dépass* hélas manqu* ignoré* suspendu* retardé* retard impayé* absent* manquant* rétabli* échéant
    ratent en_retard coincé* bloqué*
    """,
    done="""
    délivré* octroyé* renouvelé*
    fait terminé* supprimé* créé* envoyé* payé* réservé* annulé* livré* expédié* enregistré* ajouté* confirmé*
    validé* approuvé* effectué* transféré* remboursé* réussi* activé* modifié* reçu* inscrit* succès mis_à_jour
    faite faits faites parti partie passé* actif* active* opérationnel* disponible* prêt* publié* installé*
    déployé* appliqué* accepté* accordé* crédité* versé* viré* résolu* fermé* ouvert* transmis* parvenu* réglé*
    acquitté* arrivé* régl* ok marche fonctionne en_ligne en_route allumé* éteint* déplacé* reporté* invité*
    démarré* redémarré* nettoyé* corrigé*
    """,
    yes="oui ouais bien_sûr bien_entendu absolument effectivement certainement tout_à_fait évidemment",
    no="non",
    approx="environ près quasiment presque autour à_peu_près plus moins quelque quelques jusqu'à moins_de vers approximativement",
    relative="aujourd'hui demain hier maintenant prochain* dernier* dernière* après-demain avant-hier",
    harmless="""
    pas_de_problème pas_de_souci aucun_problème ne_vous_inquiétez rien_d'autre rien_de_plus sans_problème
    sans_frais sans_souci aucun_frais n'oubliez_pas n'hésitez_pas si_vous sinon non_seulement plus_rien
    aucune_autre aucune_action sans_supplément pas_besoin sans_erreur
    pas_été_touché pas_touché pas_concerné
    """,
    absent="""
    ne_trouve introuvable*
    information informations renseignement*
    rien_sur rien_à_propos aucune_information aucune_info aucune_donnée aucun_détail aucune_mention pas_d'information pas_d’information
    pas_précisé pas_indiqué n'indique n’indique ne_précise ne_mentionne pas_mentionné non_précisé non_renseigné
    aucun_renseignement d'information d’information d'informations
    """,
    total="total* somme* ensemble au_total",
)
